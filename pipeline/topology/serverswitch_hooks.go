package topology

import (
	"fmt"

	"penstock/consumers/executor/kubeapi"
	"penstock/consumers/executor/serverswitch"
	"penstock/consumers/executor/serverswitch/command"
	"penstock/consumers/executor/serverswitch/haproxy"
	"penstock/consumers/executor/serverswitch/httphook"
	"penstock/consumers/executor/serverswitch/kubernetes"
	"penstock/pipeline/config"
)

// switchedServers are the servers of a site, each with what turns it on and off. The
// error wraps ErrOptions.
func switchedServers(cfg *config.Config, site string) ([]serverswitch.Server, error) {
	hooks := make([]serverswitch.Backend, len(cfg.Servers.Switching.Hooks))
	for i := range hooks {
		h := &cfg.Servers.Switching.Hooks[i]
		b, err := newHook(h, hookedServers(cfg, site, h))
		if err != nil {
			return nil, fmt.Errorf("servers.switching.hooks[%d]: %w: %w", i, ErrOptions, err)
		}
		hooks[i] = b
	}
	urls := map[string]string{}
	for _, u := range cfg.Site(site).Servers {
		urls[config.ServerName(u)] = u
	}
	var out []serverswitch.Server
	for _, zone := range cfg.ZonesOf(site) {
		var backend serverswitch.Backend = serverswitch.None{}
		for i := range hooks {
			if h := &cfg.Servers.Switching.Hooks[i]; h.For(site, zone.Name) {
				backend = hooks[i]
				break
			}
		}
		for _, name := range zone.Servers {
			out = append(out, serverswitch.Server{Name: name, Site: site, Zone: zone.Name, URL: urls[name], Backend: backend})
		}
	}
	return out, nil
}

// newHook makes what turns servers on and off.
func newHook(h *config.SwitchHook, servers []string) (serverswitch.Backend, error) {
	switch h.Kind {
	case "command":
		return command.New(command.Options{On: h.On, Off: h.Off, Status: h.Status, Timeout: h.Timeout.Std()})
	case "http":
		return httphook.New(httphook.Options{URL: h.URL, StatusURL: h.StatusURL, TokenFile: h.TokenFile, Timeout: h.Timeout.Std()})
	case "haproxy":
		return haproxy.New(haproxy.Options{Address: h.Address, Backend: h.Backend, Names: h.Names, Timeout: h.Timeout.Std()})
	case "kubernetes":
		if len(servers) == 0 {
			return serverswitch.None{}, nil // It is for another site's.
		}
		return kubernetes.New(kubernetes.Options{
			API:       kubeapi.Options{URL: h.URL, TokenFile: h.TokenFile, CAFile: h.CAFile, Timeout: h.Timeout.Std()},
			Namespace: h.Namespace, Workload: h.Workload, Servers: servers,
		})
	}
	return serverswitch.None{}, nil
}

// hookedServers are the servers of a site that a hook is for.
func hookedServers(cfg *config.Config, site string, h *config.SwitchHook) []string {
	var out []string
	for _, zone := range cfg.ZonesOf(site) {
		if h.For(site, zone.Name) {
			out = append(out, zone.Servers...)
		}
	}
	return out
}

// CheckServers makes what the section servers needs, as the processes do. The error wraps
// ErrOptions; nil too if the configuration dispatches nothing.
func CheckServers(cfg *config.Config) error {
	if !cfg.Dispatches() {
		return nil
	}
	for _, s := range cfg.Sites {
		if _, err := switchedServers(cfg, s.Name); err != nil {
			return err
		}
	}
	_, err := newServers(cfg)
	return err
}
