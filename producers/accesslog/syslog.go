package accesslog

import "bytes"

// syslogPrefix returns where the message of a syslog line begins, −1 if the line
// is none: RFC 5424, RFC 3164, or a file of rsyslog, with <priority> or without.
func syslogPrefix(line []byte) int {
	at := priority(line)
	rest := line[at:]
	if at > 0 && bytes.HasPrefix(rest, []byte("1 ")) {
		n := rfc5424(rest[2:])
		if n < 0 {
			return -1
		}
		return at + 2 + n
	}
	n := syslogTime(rest)
	if n < 0 {
		return -1
	}
	at += n
	// The host, and a name with or without its process; the name ends with a
	// colon.
	for range 2 {
		n := bytes.IndexByte(line[at:], ' ')
		if n <= 0 {
			return -1
		}
		word := line[at : at+n]
		at += n + 1
		if word[len(word)-1] == ':' && isTag(word[:len(word)-1]) {
			return at
		}
	}
	return -1
}

// priority returns the length of <N>, 0 if there is none.
func priority(line []byte) int {
	if len(line) < 3 || line[0] != '<' {
		return 0
	}
	n := bytes.IndexByte(line[:min(len(line), 5)], '>')
	if n < 2 {
		return 0
	}
	if _, ok := digits(line[1:n]); !ok {
		return 0
	}
	return n + 1
}

var syslogTimeFormat, syslogTimeYear = mustTime("%b %e %H:%M:%S "), mustTime("%b %e %Y %H:%M:%S ")

func mustTime(pattern string) *timeFormat {
	f, err := compileTime(pattern)
	if err != nil {
		panic(err)
	}
	return f
}

// syslogTime returns the length of a time and the blank behind it, −1 if there
// is none.
func syslogTime(b []byte) int {
	for _, f := range [...]*timeFormat{syslogTimeFormat, syslogTimeYear} {
		if n := f.length(b); n > 0 {
			return n
		}
	}
	n := bytes.IndexByte(b, ' ')
	if n < len("2006-01-02T15:04:05Z") || b[10] != 'T' {
		return -1
	}
	if _, ok := parseAnyTime(b[:n], unitNone, nil); !ok {
		return -1
	}
	return n + 1
}

// isTag reports whether a word is a program's name, perhaps with its process in
// brackets.
func isTag(b []byte) bool {
	if n := bytes.IndexByte(b, '['); n > 0 && b[len(b)-1] == ']' {
		b = b[:n]
	}
	if len(b) == 0 || len(b) > 64 {
		return false
	}
	for _, c := range b {
		if !isAlphanumeric(c) && c != '_' && c != '-' && c != '.' && c != '/' {
			return false
		}
	}
	return true
}

// rfc5424 returns the length of time, host, name, process, message id and
// structured data, −1 if they are not there.
func rfc5424(b []byte) int {
	at := 0
	for i := range 5 {
		n := bytes.IndexByte(b[at:], ' ')
		if n <= 0 {
			return -1
		}
		if i == 0 && (n > 1 || b[at] != '-') {
			if _, ok := parseAnyTime(b[at:at+n], unitNone, nil); !ok {
				return -1
			}
		}
		at += n + 1
	}
	if at < len(b) && b[at] == '-' {
		at++
	} else {
		n := structured(b[at:])
		if n < 0 {
			return -1
		}
		at += n
	}
	if at < len(b) && b[at] == ' ' {
		at++
	}
	return at + len(b[at:]) - len(bytes.TrimPrefix(b[at:], []byte("\xef\xbb\xbf")))
}

// structured returns the length of [id name="value"]…, −1 if it isn't closed.
func structured(b []byte) int {
	if len(b) == 0 || b[0] != '[' {
		return -1
	}
	quoted := false
	for i := 0; i < len(b); i++ {
		switch {
		case quoted && b[i] == '\\':
			i++
		case b[i] == '"':
			quoted = !quoted
		case !quoted && b[i] == ']' && (i+1 == len(b) || b[i+1] != '['):
			return i + 1
		}
	}
	return -1
}
