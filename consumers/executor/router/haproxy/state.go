package haproxy

import "penstock/consumers/executor/haproxyapi"

// server is a server as HAProxy shows it.
type server struct {
	backend, name   string
	weight, initial int // as set, and of its configuration
	up              bool
	admin           int
}

// Bits of srv_admin_state.
const (
	adminDrain       = haproxyapi.AdminDrain
	adminDrains      = haproxyapi.AdminDrains
	adminMaintenance = haproxyapi.AdminMaintenance
)

// usable servers get requests, by their weight.
func (s *server) usable() bool { return s.up && s.admin&(adminMaintenance|adminDrains) == 0 }

// parseState reads the answers to several "show servers state".
func parseState(answer string) ([]server, error) {
	found, err := haproxyapi.ParseServers(answer)
	if err != nil {
		return nil, err
	}
	var all []server
	for _, s := range found {
		all = append(all, server{backend: s.Backend, name: s.Name, weight: s.Weight, initial: s.Initial, up: s.Up, admin: s.Admin})
	}
	return all, nil
}

// traffic is what "show stat" says of a server.
type traffic struct {
	running int // requests there and queued for it
	sticky  bool
}

// parseTraffic reads an answer to "show stat".
func parseTraffic(answer string) (map[string]traffic, error) {
	found, err := haproxyapi.ParseTraffic(answer)
	if err != nil {
		return nil, err
	}
	all := make(map[string]traffic, len(found))
	for id, t := range found {
		all[id] = traffic{running: t.Running, sticky: t.Sticky}
	}
	return all, nil
}
