package accesslog

import (
	"bytes"
	"math"
	"unicode/utf16"
	"unicode/utf8"

	"penstock/schemas/event"
	"penstock/schemas/scalar"
)

// clfLength is that of a time as the common format has it.
const clfLength = len("17/May/2015:10:05:03 +0000")

// parseTime reads dd/Mon/yyyy:hh:mm:ss ±hhmm to µs since 1970 UTC.
func parseTime(b []byte) (int64, bool) {
	if len(b) != clfLength || b[2] != '/' || b[6] != '/' || b[11] != ':' || b[14] != ':' || b[17] != ':' || b[20] != ' ' {
		return 0, false
	}
	day, ok1 := digits(b[0:2])
	year, ok2 := digits(b[7:11])
	hour, ok3 := digits(b[12:14])
	minute, ok4 := digits(b[15:17])
	second, ok5 := digits(b[18:20])
	zoneHour, ok6 := digits(b[22:24])
	zoneMin, ok7 := digits(b[24:26])
	month := monthOf(b[3], b[4], b[5])
	if !(ok1 && ok2 && ok3 && ok4 && ok5 && ok6 && ok7) || month == 0 {
		return 0, false
	}
	// A leap second is the first second of the next minute.
	if day < 1 || day > daysIn(year, month) || hour > 23 || minute > 59 || second > 60 || zoneHour > 23 || zoneMin > 59 {
		return 0, false
	}
	zone := (zoneHour*60 + zoneMin) * 60
	switch b[21] {
	case '+':
	case '-':
		zone = -zone
	default:
		return 0, false
	}
	s := int64(daysSince1970(year, month, day))*86400 + int64(hour*3600+minute*60+second-zone)
	return s * 1_000_000, true
}

// isTime reports whether a time (µs) is one that rows may have.
func isTime(us int64) bool { return us >= event.MinTime && us <= event.MaxTime }

func digits(b []byte) (int, bool) {
	n := 0
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}

func monthOf(a, b, c byte) int {
	switch uint32(a)<<16 | uint32(b)<<8 | uint32(c) {
	case 'J'<<16 | 'a'<<8 | 'n':
		return 1
	case 'F'<<16 | 'e'<<8 | 'b':
		return 2
	case 'M'<<16 | 'a'<<8 | 'r':
		return 3
	case 'A'<<16 | 'p'<<8 | 'r':
		return 4
	case 'M'<<16 | 'a'<<8 | 'y':
		return 5
	case 'J'<<16 | 'u'<<8 | 'n':
		return 6
	case 'J'<<16 | 'u'<<8 | 'l':
		return 7
	case 'A'<<16 | 'u'<<8 | 'g':
		return 8
	case 'S'<<16 | 'e'<<8 | 'p':
		return 9
	case 'O'<<16 | 'c'<<8 | 't':
		return 10
	case 'N'<<16 | 'o'<<8 | 'v':
		return 11
	case 'D'<<16 | 'e'<<8 | 'c':
		return 12
	}
	return 0
}

func daysIn(year, month int) int {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

// daysSince1970 counts days of the Gregorian calendar for years from 0 on. The
// year is taken to begin in March, so that a leap day is its last.
func daysSince1970(year, month, day int) int {
	if month <= 2 {
		year--
		month += 12
	}
	// 306 days lie between the first of March of year 0 and its end; day 719468
	// of this count is 1970-01-01.
	return 365*year + floorDiv(year, 4) - floorDiv(year, 100) + floorDiv(year, 400) + (153*(month-3)+2)/5 + day - 1 - 719468
}

func floorDiv(a, b int) int {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// parseStatus reads one to three digits, also those of a number such as 200.0.
func parseStatus(b []byte) (int32, bool) {
	if len(b) > 0 && len(b) <= 3 {
		if n, ok := digits(b); ok {
			return int32(n), true
		}
	}
	n, ok := scalar.Int(b)
	return int32(n), ok && n >= 0 && n <= 999 && len(bytes.TrimLeft(b, "0123456789")) > 0
}

// isHost refuses what cannot be an address, a host name or a dash: the first
// word of another format, such as an error log's "[Thu" or a JSON object.
func isHost(b []byte) bool {
	if len(b) == 0 {
		return false
	}
	for _, c := range b {
		if c <= ' ' || c == '"' || c == '[' || c == '{' || c == 0x7f {
			return false
		}
	}
	return true
}

// isLogin refuses what only looks like a user name. A name may hold spaces, so
// a line with one column more in front (a virtual host) would match, with the
// virtual host taken for the client and "- -" for the name.
func isLogin(b []byte) bool {
	if len(b) == 0 || b[0] == '[' || b[0] == ' ' || b[len(b)-1] == ' ' {
		return false
	}
	return len(b) < 2 || b[0] != '-' || b[1] != ' '
}

// parseCount reads a whole number. HAProxy writes a plus before one that was not
// final when it logged.
func parseCount(b []byte) (int64, bool) {
	if len(b) > 1 && b[0] == '+' {
		b = b[1:]
	}
	if len(b) == 0 {
		return 0, false
	}
	var n int64
	for _, c := range b {
		d := int64(c - '0')
		if c < '0' || c > '9' || n > (math.MaxInt64-d)/10 {
			return scalar.Int(b)
		}
		n = n*10 + d
	}
	return n, true
}

// unescape undoes what servers write for bytes that could end a field, appending
// to dst. An escape that is none stands for itself.
func unescape(dst, b []byte, e escaping) []byte {
	switch e {
	case escapeHash:
		return unescapeHash(dst, b)
	case escapeJSON:
		return unescapeJSON(dst, b)
	}
	return unescapeC(dst, b)
}

// unescapeHash undoes #NN.
func unescapeHash(dst, b []byte) []byte {
	for i := 0; i < len(b); i++ {
		if b[i] == '#' && i+2 < len(b) && unhex(b[i+1]) >= 0 && unhex(b[i+2]) >= 0 {
			dst = append(dst, byte(unhex(b[i+1])<<4|unhex(b[i+2])))
			i += 2
			continue
		}
		dst = append(dst, b[i])
	}
	return dst
}

// unescapeJSON undoes the escapes of a JSON string.
func unescapeJSON(dst, b []byte) []byte {
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' || i+1 == len(b) {
			dst = append(dst, b[i])
			continue
		}
		i++
		if n, ok := jsonEscapes[b[i]]; ok {
			dst = append(dst, n)
			continue
		}
		if code, ok := hex4(b[i:]); ok {
			i += 4
			if low, ok := surrogate(code, b[i+1:]); ok {
				code = low
				i += 6
			}
			dst = utf8.AppendRune(dst, code)
			continue
		}
		dst = append(dst, '\\', b[i])
	}
	return dst
}

var jsonEscapes = map[byte]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// hex4 reads uNNNN.
func hex4(b []byte) (rune, bool) {
	if len(b) < 5 || b[0] != 'u' {
		return 0, false
	}
	var n rune
	for _, c := range b[1:5] {
		d := unhex(c)
		if d < 0 {
			return 0, false
		}
		n = n<<4 | rune(d)
	}
	return n, true
}

// surrogate joins the first half of a pair with the second, which b begins with.
func surrogate(high rune, b []byte) (rune, bool) {
	if !utf16.IsSurrogate(high) || len(b) < 6 || b[0] != '\\' {
		return 0, false
	}
	low, ok := hex4(b[1:])
	r := utf16.DecodeRune(high, low)
	return r, ok && r != utf8.RuneError
}

// unescapeC undoes what Apache and NGINX write.
func unescapeC(dst, b []byte) []byte {
	for i := 0; i < len(b); i++ {
		c := b[i]
		if c != '\\' || i+1 == len(b) {
			dst = append(dst, c)
			continue
		}
		i++
		switch b[i] {
		case '"', '\\':
			dst = append(dst, b[i])
		case 'b':
			dst = append(dst, '\b')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'v':
			dst = append(dst, '\v')
		case 'x':
			if i+2 < len(b) && unhex(b[i+1]) >= 0 && unhex(b[i+2]) >= 0 {
				dst = append(dst, byte(unhex(b[i+1])<<4|unhex(b[i+2])))
				i += 2
				continue
			}
			fallthrough
		default:
			dst = append(dst, '\\', b[i])
		}
	}
	return dst
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// appendPrintable appends b with each byte that is not printable ASCII as %NN,
// as it would stand in a URL. The result is valid UTF-8.
func appendPrintable(dst, b []byte) []byte {
	const hex = "0123456789ABCDEF"
	for _, c := range b {
		if c < ' ' || c == 0x7f || c >= utf8.RuneSelf {
			dst = append(dst, '%', hex[c>>4], hex[c&15])
		} else {
			dst = append(dst, c)
		}
	}
	return dst
}
