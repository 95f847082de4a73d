package haproxyapi

import (
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"penstock/infra/shares"
)

// Server is a server as HAProxy shows it.
type Server struct {
	Backend, Name string
	// Address is where it is reached, host:port; empty where that isn't shown.
	Address         string
	Weight, Initial int // as set, and of its configuration
	Up              bool
	Admin           int // srv_admin_state
}

// Bits of srv_admin_state: forced drain; any drain; and all that means maintenance
// (forced, inherited, of the configuration, of a name that resolves to nothing).
const (
	AdminDrain       = 0x08
	AdminDrains      = 0x08 | 0x10
	AdminMaintenance = 0x01 | 0x02 | 0x04 | 0x20 | 0x40
)

// Usable servers get requests, by their weight.
func (s *Server) Usable() bool { return s.Up && s.Admin&(AdminMaintenance|AdminDrains) == 0 }

// ParseServers reads the answers to several "show servers state". Columns are found
// by their names: versions have more and more of them. ErrFormat, ErrRefused,
// shares.ErrAbsent for a backend that isn't there.
func ParseServers(answer string) ([]Server, error) {
	var all []Server
	var columns []string
	for line := range strings.Lines(answer) {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
		case line == "1": // the version of what follows
			columns = nil
		case strings.HasPrefix(line, "# "):
			columns = strings.Fields(line[2:])
		default:
			fields := strings.Fields(line)
			if len(fields) < 6 || len(fields) != len(columns) {
				return nil, understand(line)
			}
			s, err := parseServer(columns, fields)
			if err != nil {
				return nil, err
			}
			all = append(all, s)
		}
	}
	return all, nil
}

// understand makes an error of a line that is no list of servers.
func understand(line string) error {
	switch {
	case strings.Contains(line, "find backend"):
		return fmt.Errorf("a backend: %w (HAProxy: %.200s)", shares.ErrAbsent, line)
	case strings.Contains(strings.ToLower(line), "permission"):
		return fmt.Errorf("%w: %.200s", ErrRefused, line)
	}
	return fmt.Errorf("%w: %.200q", ErrFormat, line)
}

func parseServer(columns, fields []string) (Server, error) {
	text := func(column string) string {
		if i := slices.Index(columns, column); i >= 0 && i < len(fields) {
			return fields[i]
		}
		return ""
	}
	var numbers [4]int
	for i, column := range [...]string{"srv_uweight", "srv_iweight", "srv_op_state", "srv_admin_state"} {
		n, err := strconv.Atoi(text(column))
		if err != nil {
			return Server{}, fmt.Errorf("%w: servers state, column %s: got %.40q, expected a number", ErrFormat, column, text(column))
		}
		numbers[i] = n
	}
	s := Server{
		Backend: text("be_name"), Name: text("srv_name"), Weight: numbers[0], Initial: numbers[1],
		Up: numbers[2] == 1 || numbers[2] == 2, Admin: numbers[3], // starting, running
	}
	if s.Backend == "" || s.Name == "" {
		return Server{}, fmt.Errorf("%w: servers state: a server without a name", ErrFormat)
	}
	if address, port := text("srv_addr"), text("srv_port"); address != "" && port != "" {
		s.Address = joinAddress(address, port)
	}
	return s, nil
}

// joinAddress writes IPv6 addresses, which HAProxy shows bare, in brackets.
func joinAddress(address, port string) string {
	if strings.Contains(address, ":") && !strings.HasPrefix(address, "[") {
		address = "[" + address + "]"
	}
	return address + ":" + port
}

// Traffic is what "show stat" says of a server.
type Traffic struct {
	Running int // requests there and queued for it
	Sticky  bool
}

// ServerStats is the command whose answer ParseTraffic reads: statistics of servers.
const ServerStats = "show stat -1 4 -1"

// ParseTraffic reads an answer to "show stat", which is CSV with a header, by
// BACKEND/SERVER. ErrFormat, ErrRefused.
func ParseTraffic(answer string) (map[string]Traffic, error) {
	header, rest, ok := strings.Cut(strings.TrimPrefix(answer, "# "), "\n")
	columns := strings.Split(header, ",")
	at := func(name string) int { return slices.Index(columns, name) }
	backend, name, running, queued, cookie := at("pxname"), at("svname"), at("scur"), at("qcur"), at("cookie")
	if !ok || min(backend, name, running, queued) < 0 {
		return nil, understand(header)
	}
	r := csv.NewReader(strings.NewReader(rest))
	r.FieldsPerRecord = -1
	records, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%w: statistics: %w", ErrFormat, err)
	}
	all := map[string]Traffic{}
	for _, f := range records {
		if len(f) <= max(backend, name, running, queued) {
			return nil, fmt.Errorf("%w: statistics: a row of %d columns", ErrFormat, len(f))
		}
		t := Traffic{Sticky: cookie >= 0 && cookie < len(f) && f[cookie] != ""}
		for _, i := range [...]int{running, queued} {
			if f[i] == "" {
				continue // what has no queue
			}
			n, err := strconv.Atoi(f[i])
			if err != nil {
				return nil, fmt.Errorf("%w: statistics, %s: got %.40q, expected a number", ErrFormat, columns[i], f[i])
			}
			t.Running += n
		}
		all[f[backend]+"/"+f[name]] = t
	}
	return all, nil
}
