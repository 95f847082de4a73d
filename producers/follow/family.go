package follow

import (
	"path/filepath"
	"regexp"
)

// A rotated file is called like the file, with a number, a date, ".old" and the
// like, behind it or before its extension, and maybe the suffix of a compressor:
// access.log → access.log.1, access.log.2.gz, access.log-20260131, access.1.log,
// access-2026-01-31.log.gz, 0.log.20260131-235959. A small number behind a dash
// is more likely that of one of several servers: app-1.log.
var (
	packedSuffix  = regexp.MustCompile(`\.(gz|zst|bz2|xz|Z|lz4|tmp)$`)
	rotatedSuffix = regexp.MustCompile(`(?:` +
		`\.\d{1,5}` +
		`|[.-]\d{8,14}` + // a date without separators, a time stamp
		`|[._-]\d{4}-?\d{2}-?\d{2}(?:[T_.-]?\d{2}[:.-]?\d{2}(?:[:.-]?\d{2})?)?(?:\.\d+)?Z?` +
		`|[.-](?:old|bak|save|prev|orig|copy)` +
		`)$`)
	extension = regexp.MustCompile(`^\.[A-Za-z_]+$`)
)

// familyOf is the name of the file that one of the given name was rotated from,
// or the name itself.
func familyOf(name string) string {
	name = cutAll(packedSuffix, name)
	name = cutAll(rotatedSuffix, name)
	if ext := filepath.Ext(name); extension.MatchString(ext) && ext != name {
		return cutAll(rotatedSuffix, name[:len(name)-len(ext)]) + ext
	}
	return name
}

// cutAll cuts what matches off the end as long as something is left.
func cutAll(suffix *regexp.Regexp, name string) string {
	for {
		at := suffix.FindStringIndex(name)
		if at == nil || at[0] == 0 {
			return name
		}
		name = name[:at[0]]
	}
}

// rotatedName reports whether a file of that name looks like a rotated one.
func rotatedName(name string) bool { return familyOf(name) != name }
