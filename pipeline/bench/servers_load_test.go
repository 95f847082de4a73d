package bench

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"penstock/infra/clock"
)

const (
	// offeredPatience is after how long a request counts as failed.
	offeredPatience = 2 * time.Second
	// servedBy is the header that says which server has answered.
	servedBy = "X-Server"
)

// offer sends requests at the instants of a Poisson process, the same ones for the same
// seed, and waits for all. Their delays count from those instants, whatever kept them
// from being sent.
func offer(t testing.TB, address string, rate float64, d time.Duration, seed uint64) (o offered) {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 4096, DisableCompression: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: offeredPatience}
	r := rand.New(rand.NewPCG(seed, 1))
	o.answered = map[string]int{}
	var mu sync.Mutex
	var all sync.WaitGroup
	begin := time.Now()
	for next := time.Duration(0); ; {
		if next += time.Duration(r.ExpFloat64() / rate * float64(time.Second)); next >= d {
			break
		}
		due := begin.Add(next)
		_ = clock.System().Sleep(t.Context(), time.Until(due))
		all.Go(func() {
			server, err := ask(client, address)
			took := time.Since(due)
			mu.Lock()
			defer mu.Unlock()
			if o.delays = append(o.delays, took); err != nil {
				o.failed++
				return
			}
			o.answered[server]++
		})
	}
	all.Wait()
	o.took = max(time.Since(begin), d)
	return o
}

// ask sends one request and says who has answered it.
func ask(client *http.Client, address string) (server string, err error) {
	resp, err := client.Get("http://" + address + "/k")
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	n, err := io.Copy(io.Discard, resp.Body)
	if err == nil && (resp.StatusCode != http.StatusOK || n != answerSize) {
		err = fmt.Errorf("status %d, %d bytes", resp.StatusCode, n)
	}
	return resp.Header.Get(servedBy), err
}

// serveMachine is a server that does serversSlots requests at once, each of which takes
// as long, and lets the others wait.
func serveMachine(ctx context.Context, t *testing.T, takes string) {
	d, err := time.ParseDuration(takes)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	slots := make(chan struct{}, serversSlots)
	answer := []byte(strings.Repeat("k", answerSize))
	server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case slots <- struct{}{}:
		case <-r.Context().Done():
			return
		}
		err := clock.System().Sleep(r.Context(), d)
		<-slots
		if err != nil {
			return
		}
		w.Header()[servedBy] = []string{l.Addr().String()}
		_, _ = w.Write(answer)
	})}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	fmt.Printf("address %s\n", l.Addr())
	_ = server.Serve(l) // ends when it is closed
}

// dispatchConfig is a site with its servers, which are dispatched if there is a policy.
func dispatchConfig(site, policy, servers, store string) []byte {
	c := fmt.Sprintf(`sites:
  - {name: %s, lat: 37.4, lon: -79.8, capacity: 1TB/h, url: "http://127.0.0.1:1", servers: ["http://%s"], store: "dir:%s"}
entry:
  listen: 127.0.0.1:0
privacy: {user_key: "a key of thirty-two bytes or more, for tests"}
telemetry: {listen: ""}
`, site, strings.ReplaceAll(servers, ",", `", "http://`), store)
	if policy != "" {
		c += fmt.Sprintf(`servers:
  policy: %s
  in_service: %d
  classes: {other: {t_max: %s, penalty: 1}}
`, policy, serversSlots, serversLimit)
	}
	return []byte(c)
}
