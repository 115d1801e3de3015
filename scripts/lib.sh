# Sourced by the other scripts.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cache=${RYE_CACHE:-$PWD/.cache}

say() { printf 'rye: %s\n' "$*" >&2; }

# packages NAME… : make sure that Debian packages are there. As root (or with sudo that asks for nothing)
# they are installed; otherwise the command is printed and the caller decides.
packages() {
	local missing=() p
	for p in "$@"; do
		dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing+=("$p")
	done
	[ ${#missing[@]} -eq 0 ] && return 0
	if ! command -v apt-get >/dev/null; then
		say "please install what your distribution calls: ${missing[*]}"
		return 1
	fi
	local sudo=
	if [ "$(id -u)" -ne 0 ]; then
		if sudo -n true 2>/dev/null; then sudo=sudo; else
			say "please run: sudo apt-get install -y ${missing[*]}"
			return 1
		fi
	fi
	say "installing ${missing[*]}"
	$sudo apt-get update -qq >/dev/null || true
	DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=300 "${missing[@]}" >/dev/null
}
