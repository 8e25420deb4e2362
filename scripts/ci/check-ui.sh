#!/bin/bash
# The checked-in script and style of the pages are what ui/ gives, its types are
# right, and the hashes of the page's policy are those of the two files.
cd "$(dirname "$0")/../.." || exit 1
bad=0
for pair in SCRIPT:js STYLE:css; do
	hash=$(sha256sum "src/report/html_bundle.${pair#*:}" | cut -c1-64 | sed 's/../\\x&/g')
	# shellcheck disable=SC2059 # the bytes are in the format
	if ! grep -qF "NP_HTML_${pair%:*}_SHA256" src/report/html_hashes.h ||
		! grep -qF "\"$(printf "$hash" | base64 -w 0)\"" src/report/html_hashes.h; then
		echo "ui: src/report/html_hashes.h does not name html_bundle.${pair#*:}; run scripts/ui.sh"
		bad=1
	fi
done
[ $bad = 0 ] || exit 1
fresh=$(mktemp -d) || exit 1
trap 'rm -rf "$fresh"' EXIT
scripts/ui.sh "$fresh"
status=$?
[ $status = 0 ] || exit $status
for name in html_bundle.js html_bundle.css html_hashes.h; do
	if ! cmp -s "$fresh/$name" "src/report/$name"; then
		echo "ui: src/report/$name is not what ui/ gives; run scripts/ui.sh"
		bad=1
	fi
done
[ $bad = 0 ] && echo "ui: ok"
exit $bad
