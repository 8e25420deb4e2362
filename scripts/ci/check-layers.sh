#!/bin/bash
# #include "layer/…" looks down the storeys of DESIGN.md §1, never up or across.
cd "$(dirname "$0")/../.." || exit 1

# What each layer may include besides itself.
below_of() {
	case $1 in
	base) echo "" ;;
	io) echo "base" ;;
	profile | report) echo "base io" ;; # beside each other
	capture) echo "base io profile report" ;;
	gate | analysis | view | synth) echo "base io profile report capture" ;;
	# a capture is judged as soon as it has been got
	collect) echo "base io profile report capture gate" ;;
	# a closer look at one rank of many is the analysis of one rank
	cluster) echo "base io profile report capture analysis" ;;
	# advice turns what the analyses found into what to do, so it may see them
	advice) echo "base io profile report capture analysis cluster" ;;
	cmd) echo "base io profile report capture gate analysis cluster advice collect view synth" ;;
	main.c) echo "base cmd" ;;
	*) return 1 ;;
	esac
}

bad=0 files=0
while IFS= read -r file; do
	layer=${file#src/}
	layer=${layer%%/*}
	if ! below=$(below_of "$layer"); then
		echo "layers: $file: src/$layer is no layer of DESIGN.md §1"
		bad=1
		continue
	fi
	files=$((files + 1))
	while IFS=: read -r line target; do
		case " $layer $below npuprof " in
		*" $target "*) ;;
		*)
			echo "layers: $file:$line: $layer may not include $target/ (it may: ${below:-nothing})"
			bad=1
			;;
		esac
	done < <(sed -n -E '/^[ \t]*#[ \t]*include[ \t]*"/{=;s/^[^"]*"([^"]*)".*/\1/;p}' "$file" |
		paste -d: - - | sed -E 's#^([0-9]+):([^/]*)/.*#\1:\2#')
done < <(find src -type f -name '*.[ch]' | sort)
[ $bad = 0 ] && echo "layers: ok, $files files"
exit $bad
