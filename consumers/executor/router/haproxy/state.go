package haproxy

import (
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"penstock/infra/shares"
)

// server is a server as HAProxy shows it.
type server struct {
	backend, name   string
	weight, initial int // as set, and of its configuration
	up              bool
	admin           int
}

// Bits of srv_admin_state: forced drain, and all that means maintenance (forced,
// inherited, of the configuration, of a name that resolves to nothing).
const (
	adminDrain       = 0x08
	adminDrains      = 0x08 | 0x10
	adminMaintenance = 0x01 | 0x02 | 0x04 | 0x20 | 0x40
)

// usable servers get requests, by their weight.
func (s *server) usable() bool { return s.up && s.admin&(adminMaintenance|adminDrains) == 0 }

// parseState reads the answers to several "show servers state". Columns are found
// by their names: versions have more and more of them.
func parseState(answer string) ([]server, error) {
	var all []server
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

func parseServer(columns, fields []string) (server, error) {
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
			return server{}, fmt.Errorf("%w: servers state, column %s: got %.40q, expected a number", ErrFormat, column, text(column))
		}
		numbers[i] = n
	}
	s := server{
		backend: text("be_name"), name: text("srv_name"), weight: numbers[0], initial: numbers[1],
		up: numbers[2] == 1 || numbers[2] == 2, admin: numbers[3], // starting, running
	}
	if s.backend == "" || s.name == "" {
		return server{}, fmt.Errorf("%w: servers state: a server without a name", ErrFormat)
	}
	return s, nil
}

// traffic is what "show stat" says of a server.
type traffic struct {
	running int // requests there and queued for it
	sticky  bool
}

// parseTraffic reads an answer to "show stat", which is CSV with a header.
func parseTraffic(answer string) (map[string]traffic, error) {
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
	all := map[string]traffic{}
	for _, f := range records {
		if len(f) <= max(backend, name, running, queued) {
			return nil, fmt.Errorf("%w: statistics: a row of %d columns", ErrFormat, len(f))
		}
		t := traffic{sticky: cookie >= 0 && cookie < len(f) && f[cookie] != ""}
		for _, i := range [...]int{running, queued} {
			if f[i] == "" {
				continue // what has no queue
			}
			n, err := strconv.Atoi(f[i])
			if err != nil {
				return nil, fmt.Errorf("%w: statistics, %s: got %.40q, expected a number", ErrFormat, columns[i], f[i])
			}
			t.running += n
		}
		all[f[backend]+"/"+f[name]] = t
	}
	return all, nil
}
