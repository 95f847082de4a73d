package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"penstock/consumers/executor/kubeapi"
	"penstock/consumers/executor/serverswitch"
)

var (
	// ErrOptions is returned by New for options that can't work.
	ErrOptions = errors.New("kubernetes scale options")
	// ErrHeld is returned for a pod of a StatefulSet that can't end before a later one; with
	// serverswitch.ErrLater if that one is to end as well. Nothing was written.
	ErrHeld = errors.New("pods of a StatefulSet end from the highest")
	// ErrConflict is returned if others wrote before each of several tries. Nothing was
	// written.
	ErrConflict = errors.New("others write the scale again and again")
)

// mostTries of one change, against the writes of others.
const mostTries = 5

// Options of a Backend.
type Options struct {
	// API is where the API server is. An empty URL: that of the cluster that the process
	// runs in.
	API kubeapi.Options
	// Each is how many pods a server of a Deployment stands for. Defaults to 1; of a
	// StatefulSet it is 1.
	Each int
	// Namespace of the workload. Defaults to "default".
	Namespace string
	// Servers that the workload stands for, by their names in tables. Needed.
	Servers []string
	// Workload is deployment/NAME or statefulset/NAME. Needed.
	Workload string
}

// Backend scales one workload. It is safe for concurrent use.
type Backend struct {
	o       Options
	api     *kubeapi.Client
	path    string
	ordered bool       // a StatefulSet
	mu      sync.Mutex // held by who changes the scale
}

var _ serverswitch.Backend = (*Backend)(nil)

// New returns a backend of an API server, which need not be there yet. ErrOptions,
// kubeapi.ErrOptions.
func New(o Options) (*Backend, error) {
	kind, name, _ := strings.Cut(o.Workload, "/")
	kind = strings.ToLower(kind)
	if kind != "deployment" && kind != "statefulset" || name == "" || strings.Contains(name, "/") {
		return nil, fmt.Errorf("workload: got %.200q, expected deployment/NAME or statefulset/NAME: %w", o.Workload, ErrOptions)
	}
	o.Servers = slices.Clone(o.Servers)
	sorted := slices.Sorted(slices.Values(o.Servers))
	if len(sorted) == 0 || sorted[0] == "" || len(slices.Compact(sorted)) != len(o.Servers) {
		return nil, fmt.Errorf("workload %s: expected servers, each once: %w", o.Workload, ErrOptions)
	}
	o.Each = cmp.Or(o.Each, 1)
	if o.Each < 0 || o.Each > 1 && kind == "statefulset" {
		return nil, fmt.Errorf("workload %s: %d pods for each server, expected at least 1, of a StatefulSet 1: %w", o.Workload, o.Each, ErrOptions)
	}
	o.Namespace = cmp.Or(o.Namespace, "default")
	if err := o.API.InCluster(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	api, err := kubeapi.New(o.API)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	path := "/apis/apps/v1/namespaces/" + url.PathEscape(o.Namespace) + "/" + kind + "s/" + url.PathEscape(name) + "/scale"
	return &Backend{o: o, api: api, path: path, ordered: kind == "statefulset"}, nil
}

// Name is kubernetes.
func (b *Backend) Name() string { return "kubernetes" }

// Close closes idle connections to the API server.
func (b *Backend) Close() { b.api.Close() }

// scale is what is read of a Scale (autoscaling/v1).
type scale struct {
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Spec struct {
		Replicas int `json:"replicas"` // left out for 0
	} `json:"spec"`
}

// change is the merge patch: it sets the number, under the version that was read.
type change struct {
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Spec struct {
		Replicas int `json:"replicas"`
	} `json:"spec"`
}

func (b *Backend) read(ctx context.Context) (scale, error) {
	var s scale
	err := b.api.Ask(ctx, kubeapi.Question{Method: http.MethodGet, Path: b.path}, &s)
	return s, err
}

// Switch sets the number of pods to that of all servers which are to run.
func (b *Backend) Switch(ctx context.Context, o serverswitch.Order) error {
	if !slices.Contains(b.o.Servers, o.Server.Name) {
		return fmt.Errorf("%.80q is none of %s: %w", o.Server.Name, b.o.Workload, ErrOptions)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for range mostTries {
		now, err := b.read(ctx)
		if err != nil {
			return err
		}
		// As things stand now: orders for several servers come at once, in any order.
		pods, err := b.pods(o)
		if err != nil || pods == now.Spec.Replicas {
			return err
		}
		var c change
		c.Metadata.ResourceVersion, c.Spec.Replicas = now.Metadata.ResourceVersion, pods
		err = b.api.Ask(ctx, kubeapi.Question{
			Method: http.MethodPatch, Path: b.path, Query: url.Values{"fieldManager": {"penstock"}}, ContentType: kubeapi.MergePatch, Body: c,
		}, &now)
		if !errors.Is(err, kubeapi.ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("%s: %w", b.o.Workload, ErrConflict)
}

// pods is how many there are to be for the servers that are to run. A server of an order
// is one of them, or not, as the order says.
func (b *Backend) pods(o serverswitch.Order) (int, error) {
	up, count, highest := o.Up(), 0, -1
	for i, name := range b.o.Servers {
		if name == o.Server.Name && !o.On || name != o.Server.Name && !slices.Contains(up, name) {
			continue
		}
		count++
		highest = i
	}
	if !b.ordered {
		return count * b.o.Each, nil
	}
	if o.On || slices.Index(b.o.Servers, o.Server.Name) > highest {
		return highest + 1, nil
	}
	wanted := o.Wanted()
	for _, name := range b.o.Servers[slices.Index(b.o.Servers, o.Server.Name)+1 : highest+1] {
		if slices.Contains(wanted, name) {
			return 0, fmt.Errorf("%.80q is wanted on: %w", name, ErrHeld)
		}
	}
	return 0, fmt.Errorf("%.80q has not ended: %w: %w", b.o.Servers[highest], ErrHeld, serverswitch.ErrLater)
}

// Observe says what the number of pods says of a server: of a Deployment with several
// servers nothing, unless all or none are up.
func (b *Backend) Observe(ctx context.Context, s serverswitch.Server) (serverswitch.Power, error) {
	at := slices.Index(b.o.Servers, s.Name)
	if at < 0 {
		return serverswitch.Unseen, fmt.Errorf("%.80q is none of %s: %w", s.Name, b.o.Workload, ErrOptions)
	}
	now, err := b.read(ctx)
	if err != nil {
		return serverswitch.Unseen, err
	}
	pods := now.Spec.Replicas
	switch {
	case b.ordered && at < pods, !b.ordered && pods >= len(b.o.Servers)*b.o.Each:
		return serverswitch.PowerOn, nil
	case b.ordered, pods == 0:
		return serverswitch.PowerOff, nil
	}
	return serverswitch.Unseen, nil
}
