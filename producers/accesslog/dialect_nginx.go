package accesslog

import (
	"strings"

	"penstock/infra/errorkind"
)

// nginxKinds tells what the variables of NGINX hold where it matters for where
// they end. Source: the documentation of ngx_http_log_module, _core_ and
// _upstream_module.
var nginxKinds = map[string]kind{
	"remote_addr": kindHost, "realip_remote_addr": kindHost, "remote_user": kindLogin, "time_local": kindTime,
	"request": kindRequest, "status": kindStatus, "body_bytes_sent": kindBytes, "bytes_sent": kindBytes,
	"http_referer": kindReferer, "http_user_agent": kindAgent,
	"http_x_forwarded_for": kindList, "proxy_add_x_forwarded_for": kindList,
}

// compileNGINX reads a log_format string, or the whole directive with its name,
// escape and quoted parts.
func compileNGINX(format string) (*textLayout, error) {
	format, escape, err := nginxString(format)
	if err != nil {
		return nil, err
	}
	b := builder{}
	for i := 0; i < len(format); {
		if format[i] != '$' {
			b.literal(format[i : i+1])
			i++
			continue
		}
		name, next := nginxVariable(format, i+1)
		if name == "" {
			return nil, errorkind.Errorf(ErrFormat, "%.40q is no variable", format[i:])
		}
		e := element{name: name, kind: nginxKinds[name], escape: escape}
		if strings.HasPrefix(name, "upstream_") {
			e.kind = kindList
		}
		// An address before its port, as in $remote_addr:$remote_port.
		e.last = e.kind == kindHost && strings.HasPrefix(format[next:], ":")
		if err := b.field(e); err != nil {
			return nil, err
		}
		i = next
	}
	return b.layout()
}

// nginxVariable reads the name at pos, with braces or without.
func nginxVariable(s string, pos int) (name string, next int) {
	if pos < len(s) && s[pos] == '{' {
		n := strings.IndexByte(s[pos:], '}')
		if n < 0 {
			return "", pos
		}
		return strings.ToLower(s[pos+1 : pos+n]), pos + n + 1
	}
	for next = pos; next < len(s) && (s[next] == '_' || isAlphanumeric(s[next])); next++ {
	}
	return strings.ToLower(s[pos:next]), next
}

func isAlphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// nginxString takes the format out of a directive "log_format name escape=… 'a'
// 'b';". A format alone may have the escape in front.
func nginxString(s string) (string, escaping, error) {
	s = strings.TrimSpace(s)
	directive := strings.HasPrefix(s, "log_format ")
	if directive {
		_, s, _ = strings.Cut(strings.TrimSpace(strings.TrimPrefix(s, "log_format ")), " ")
		s = strings.TrimSuffix(strings.TrimSpace(s), ";")
	}
	escape := escapeC
	if rest, ok := strings.CutPrefix(strings.TrimSpace(s), "escape="); ok {
		var name string
		name, s, _ = strings.Cut(rest, " ")
		switch name {
		case "default":
		case "json":
			escape = escapeJSON
		case "none":
			escape = escapeNone
		default:
			return "", 0, errorkind.Errorf(ErrFormat, "escape=%.20q, expected default, json or none", name)
		}
		s = strings.TrimSpace(s)
	}
	if !directive && (s == "" || s[0] != '\'') {
		return s, escape, nil
	}
	joined, err := quotedParts(s)
	return joined, escape, err
}

// quotedParts joins strings in quotes that stand behind each other.
func quotedParts(s string) (string, error) {
	var out strings.Builder
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		quote := s[0]
		if quote != '\'' && quote != '"' {
			return "", errorkind.Errorf(ErrFormat, "%.40q, expected a string in quotes", s)
		}
		i := 1
		for ; i < len(s) && s[i] != quote; i++ {
			if s[i] == '\\' && i+1 < len(s) && (s[i+1] == quote || s[i+1] == '\\') {
				i++
			}
			out.WriteByte(s[i])
		}
		if i == len(s) {
			return "", errorkind.Errorf(ErrFormat, "the quote of %.40q is not closed", s)
		}
		s = s[i+1:]
	}
	return out.String(), nil
}
