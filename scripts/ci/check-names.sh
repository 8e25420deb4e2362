#!/bin/bash
# Nothing in the tree knows the machine it was written on, a package mirror, or
# work left undone.
cd "$(dirname "$0")/../.." || exit 1
self=scripts/ci/check-names.sh # it has to name what it looks for
mapfile -t files < <(find . -type f \
	-not -path './.git' -not -path './.git/*' -not -path './build/*' -not -path './dist/*' \
	-not -path '*/node_modules/*' -not -path './tests/fuzz/corpus/*' -not -path "./$self" | sort)
bad=0
complain() { # what, extended regular expression
	local hits
	hits=$(grep -nIE "$2" "${files[@]}" | sed 's#^\./##' | cut -c1-160)
	if [ -n "$hits" ]; then
		printf '%s\n' "$hits" | sed "s/^/names: $1: /"
		bad=1
	fi
}
complain "path of a machine" '(^|[^A-Za-z0-9_./-])/(work|root|home/[a-z]+|tmp/wt)(/|$|[^A-Za-z0-9_-])'
complain "registry or mirror" '(debian\.org|ubuntu\.com|pypi\.org|pythonhosted\.org|npmjs\.(org|com)|crates\.io|golang\.org|docker\.io|ghcr\.io|nodesource\.com)'
complain "unfinished" '(^|[^A-Za-z0-9_])(TODO|FIXME|XXX)([^A-Za-z0-9_]|$)'
[ $bad = 0 ] && echo "names: ok, ${#files[@]} files"
exit $bad
