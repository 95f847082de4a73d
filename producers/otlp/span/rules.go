package span

import (
	"fmt"
	"regexp"
	"strings"
)

// Names of attributes that are made of what formats say elsewhere.
const (
	// AttrName is the span's own name.
	AttrName = "span.name"
	// AttrService is the component (Zipkin: localEndpoint, Jaeger: process).
	AttrService = "service.name"
	// AttrPeer is the component on the other side (Zipkin: remoteEndpoint).
	AttrPeer = "peer.service"
	// AttrAddress is the address of the span's own host (Zipkin: localEndpoint).
	AttrAddress = "local.address"
	// AttrPod is the pod (span CSV).
	AttrPod = "k8s.pod.name"
)

// Source is where a column comes from.
type Source struct {
	// From is the attribute's key. A span's own value is used before its
	// resource's.
	From string
	// Match, if set, must match the value; its first group, or all of it without
	// one, is what the column gets.
	Match *regexp.Regexp
	// Value, without From, is what a column gets that has nothing else.
	Value string
}

// ParseSource reads "key", "key=regexp" or "=value".
func ParseSource(text string) (Source, error) {
	key, pattern, found := strings.Cut(text, "=")
	switch {
	case key == "" && pattern == "":
		return Source{}, fmt.Errorf("%q, expected key, key=regexp or =value: %w", text, ErrRule)
	case key == "":
		return Source{Value: pattern}, nil
	case !found:
		return Source{From: key}, nil
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return Source{}, fmt.Errorf("%q: %w: %w", text, err, ErrRule)
	}
	return Source{From: key, Match: re}, nil
}

// ParseSources reads several; none gives nil.
func ParseSources(texts []string) ([]Source, error) {
	var out []Source
	for _, t := range texts {
		s, err := ParseSource(t)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// Rules say which attributes fill which column. The first source that has a value
// counts. A list that is nil has its default.
type Rules struct {
	// Component that did what the span is about. Defaults to service.name unless
	// it begins with unknown_service, as libraries write it that were not told;
	// then k8s.deployment.name, then the pod's name without its two last parts.
	Component []Source
	// Site of the component. Defaults to cloud.region, cloud.availability_zone,
	// k8s.cluster.name.
	Site []Source
	// Server is the process within the site. Two spans of one component with one
	// server are of one process. Defaults to service.instance.id, k8s.pod.name,
	// k8s.pod.uid, container.id, the host's address, host.name, hostname, ip.
	Server []Source
	// Callee is whom a client calls, where no server's half says. Defaults to
	// peer.service, db.system.name, db.system, server.address, net.peer.name.
	Callee []Source
	// Caller is who called a server. Defaults to peer.service.
	Caller []Source
	// Class defaults to http.route, rpc.method.
	Class []Source
	// Owner and User default to nothing: what names them is the application's.
	Owner, User []Source
	// Sites gives names of sites other names: those of the configuration.
	Sites map[string]string
}

func keys(names ...string) []Source {
	out := make([]Source, 0, len(names))
	for _, n := range names {
		out = append(out, Source{From: n})
	}
	return out
}

// podName is a pod of a Deployment: name, hash of the replica set, own hash.
var podName = regexp.MustCompile(`^(.+)-[0-9a-z]{5,10}-[0-9a-z]{5}$`)

func orDefault(own, otherwise []Source) []Source {
	if own == nil {
		return otherwise
	}
	return own
}

// complete returns the sources by column.
func (r *Rules) complete() [numColumns][]Source {
	return [numColumns][]Source{
		colComponent: orDefault(r.Component, append(
			keys(AttrService, "k8s.deployment.name"), Source{From: AttrPod, Match: podName}, Source{From: AttrPod})),
		colSite: orDefault(r.Site, keys("cloud.region", "cloud.availability_zone", "k8s.cluster.name")),
		colServer: orDefault(r.Server, keys("service.instance.id", AttrPod, "k8s.pod.uid", "container.id",
			AttrAddress, "host.name", "hostname", "ip")),
		colCallee: orDefault(r.Callee, keys(AttrPeer, "db.system.name", "db.system", "server.address", "net.peer.name")),
		colCaller: orDefault(r.Caller, keys(AttrPeer)),
		colClass:  orDefault(r.Class, keys("http.route", "rpc.method")),
		colOwner:  r.Owner,
		colUser:   r.User,

		colStatus: keys("http.response.status_code", "http.status_code", "response_status_code", "client_status_code"),
		colRPC:    keys("rpc.grpc.status_code", "rpc.response.status_code"),
		colMethod: keys("http.request.method", "http.method"),
		colKind:   keys("span.kind"),
		colError:  keys("error", "otel.status_code"),
		colRead:   keys("http.request.body.size", "http.request_content_length", "request_size"),
		colWrote:  keys("http.response.body.size", "http.response_content_length", "response_size"),
	}
}
