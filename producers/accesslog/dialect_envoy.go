package accesslog

import (
	"strings"

	"penstock/infra/errorkind"
)

// envoyKinds tells what the command operators of Envoy hold where it matters
// for where they end.
var envoyKinds = map[string]kind{
	"RESPONSE_CODE": kindStatus, "BYTES_SENT": kindBytes, "BYTES_RECEIVED": kindBytes,
	"DURATION": kindNumber, "RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)": kindNumber,
	"REQ(X-FORWARDED-FOR)": kindList, "REQ(USER-AGENT)": kindAgent,
	"DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT": kindHost, "DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT": kindHost,
}

// compileEnvoy reads a text format string. A field is called as its command
// operator without the percent signs and the length; headers in capitals.
func compileEnvoy(format string) (*textLayout, error) {
	format = strings.TrimRight(strings.ReplaceAll(format, `\n`, "\n"), "\r\n")
	b := builder{}
	for rest := format; rest != ""; {
		literal, after, found := strings.Cut(rest, "%")
		b.literal(literal)
		if !found {
			break
		}
		if strings.HasPrefix(after, "%") {
			b.literal("%")
			rest = after[1:]
			continue
		}
		command, behind, ok := envoyCommand(after)
		if !ok {
			return nil, errorkind.Errorf(ErrFormat, "command %%%.40q is not closed", command)
		}
		name, argument := envoyName(command)
		if name == "" {
			return nil, errorkind.Errorf(ErrFormat, "%%%.40q%% is no command", command)
		}
		e := element{name: name, kind: envoyKinds[name]}
		if name == "START_TIME" && argument != "" {
			f, err := compileTime(argument)
			if err != nil {
				return nil, err
			}
			e.time = f
		}
		if err := b.field(e); err != nil {
			return nil, err
		}
		rest = behind
	}
	return b.layout()
}

// envoyCommand cuts a command at the percent sign that ends it; those within
// its parentheses do not.
func envoyCommand(s string) (command, rest string, ok bool) {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '(':
			depth++
		case ')':
			depth--
		case '%':
			if depth <= 0 {
				return s[:i], s[i+1:], true
			}
		}
	}
	return s, "", false
}

// envoyName returns the field's name of a command, and the argument of a time.
func envoyName(command string) (name, argument string) {
	if open := strings.IndexByte(command, '('); open >= 0 {
		shut := strings.LastIndexByte(command, ')')
		if shut < open {
			return "", ""
		}
		name, argument = command[:open], command[open+1:shut]
	} else {
		name, _, _ = strings.Cut(command, ":") // the length at which it is cut
	}
	for i := range len(name) {
		if c := name[i]; c != '_' && !isAlphanumeric(c) {
			return "", ""
		}
	}
	switch name {
	case "START_TIME":
		return name, argument
	case "REQUEST_HEADER", "REQ":
		name = "REQ"
	case "RESPONSE_HEADER", "RESP":
		name = "RESP"
	}
	if argument != "" {
		name += "(" + strings.ToUpper(argument) + ")"
	}
	return name, ""
}
