package accesslog

import (
	"math"
	"unicode/utf8"

	"penstock/schemas/event"
)

// parseTime reads dd/Mon/yyyy:hh:mm:ss ±hhmm to µs since 1970 UTC.
func parseTime(b []byte) (int64, bool) {
	if len(b) != 26 || b[2] != '/' || b[6] != '/' || b[11] != ':' || b[14] != ':' || b[17] != ':' || b[20] != ' ' {
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

// parseStatus reads one to three digits; "-" is missing.
func parseStatus(b []byte) (int32, bool) {
	if len(b) == 1 && b[0] == '-' {
		return event.NullStatus, true
	}
	if len(b) < 1 || len(b) > 3 {
		return 0, false
	}
	n, ok := digits(b)
	return int32(n), ok
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

// parseBytes reads a number of bytes. A dash is how %b writes 0.
func parseBytes(b []byte) (int64, bool) {
	if len(b) == 1 && b[0] == '-' {
		return 0, true
	}
	if len(b) == 0 {
		return 0, false
	}
	var n int64
	for _, c := range b {
		d := int64(c - '0')
		if c < '0' || c > '9' || n > (math.MaxInt64-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, true
}

// unescape undoes the escapes that Apache and NGINX write into quoted fields,
// appending to dst. A backslash before anything else stands for itself.
func unescape(dst, b []byte) []byte {
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
