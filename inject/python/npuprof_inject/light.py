"""JSON without the package json, whose regular expressions cost each short-lived process some ms.

The C half of json, `_json`, does the work; where it is missing or other than it was, json does.
"""


def loads(text):
    try:
        from _json import make_scanner

        class context:
            strict = True
            object_hook = object_pairs_hook = None
            parse_float, parse_int = float, int
            parse_constant = {"NaN": None}.get
            memo = {}
        begin = len(text) - len(text.lstrip())
        value, end = make_scanner(context)(text, begin)
        if not text[end:].strip():
            return value
    except Exception:  # json says what is wrong with it
        pass
    import json
    return json.loads(text)


def dumps(value):
    """One line, ASCII only. What JSON has no type for is written as its str()."""
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if type(value) is int or (type(value) is float and value - value == 0):
        return repr(value)
    if isinstance(value, dict):
        return "{%s}" % ", ".join("%s: %s" % (_quote(str(key)), dumps(item))
                                  for key, item in value.items())
    if isinstance(value, (list, tuple, set, frozenset)):
        return "[%s]" % ", ".join([dumps(item) for item in value])
    return _quote(str(value))


def _quote(text):
    try:
        from _json import encode_basestring_ascii
    except ImportError:
        from json.encoder import encode_basestring_ascii
    return encode_basestring_ascii(text)
