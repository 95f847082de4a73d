package postgres

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// likeTable reports whether a name looks like a table's: 00.schema.table. An
// object of another name is never taken for rows, and of one that looks so only if
// it begins as rows do: "01.introduction.txt" may be anybody's.
func likeTable(name string) bool {
	number, rest, ok := strings.Cut(name, ".")
	if !ok || len(number) < 2 || !strings.Contains(rest, ".") || strings.Contains(name, "/") {
		return false
	}
	return strings.Trim(number, "0123456789") == ""
}

// kind is the type of an owner column, as far as it decides which owners a table
// can hold.
type kind string

const (
	ofText kind = "text"
	ofInt  kind = "int8"
	ofUUID kind = "uuid"
)

// fits reports whether an owner's id is the text of a value of the type. An owner
// whose id isn't has no rows in the table.
func (k kind) fits(owner string) bool {
	switch k {
	case ofInt:
		n, err := strconv.ParseInt(owner, 10, 64)
		return err == nil && strconv.FormatInt(n, 10) == owner
	case ofUUID:
		return isUUID(owner)
	default:
		return utf8.ValidString(owner) && !strings.Contains(owner, "\x00")
	}
}

// literal quotes a string for SQL. It holds no NUL and is UTF-8; the session has
// standard strings.
func literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// isUUID reports whether s is a UUID in the spelling in which the server writes
// it.
func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		hyphen := i == 8 || i == 13 || i == 18 || i == 23
		if hyphen != (s[i] == '-') || !hyphen && !strings.Contains("0123456789abcdef", s[i:i+1]) {
			return false
		}
	}
	return true
}
