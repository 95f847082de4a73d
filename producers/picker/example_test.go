package picker_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"penstock/producers/picker"
)

// An application calls cart by its name; where that is the split says.
func Example() {
	ctx := context.Background()
	cart := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s for %s", r.URL.Path, r.Header.Get("Penstock-Component"))
	}))
	defer cart.Close()
	api := startAPI(cart.URL)
	defer api.Close()

	p, err := picker.Open(ctx, picker.Options{URL: api.URL, Component: "web", Site: "us-east"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	client := &http.Client{Transport: p.Transport(nil)}

	if err := p.Ready(ctx, "cart"); err != nil { // or have Options.Fallback, and wait for nothing
		fmt.Println(err)
		return
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://cart/items", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := client.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	body, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	fmt.Println(string(body), err)
	// Output:
	// /items for web <nil>
}

// What speaks another protocol than HTTP picks by itself.
func ExamplePicker_Pick() {
	api := startAPI("http://10.1.0.1:7000")
	defer api.Close()
	p, err := picker.Open(context.Background(), picker.Options{
		URL: api.URL, Component: "web", Site: "us-east",
		Fallback: map[string][]string{"search": {"http://10.0.0.9:7000"}}, // until the API tells of it
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()

	call := func(string) error { return nil }
	c := p.Pick("search")
	err = call(c.Server)
	c.Done(err)
	fmt.Println(c.Site, c.Server, c.Known, err)
	// Output:
	// us-east http://10.0.0.9:7000 false <nil>
}

// startAPI stands in for the API of penstock router: all calls from us-east to cart
// go to us-west.
func startAPI(server string) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/v1/split/cart":
			http.Error(w, `{"error":"unknown-component","text":"no component of that name is configured"}`, http.StatusNotFound)
		case r.Header.Get("If-None-Match") == `"7"`:
			<-r.Context().Done() // nothing changes here
		default:
			w.Header().Set("ETag", `"7"`)
			fmt.Fprintf(w, `{"component":"cart","from":"web","from_site":"us-east","epoch":7,"known":true,`+
				`"ratios":[{"site":"us-west","share":1,"servers":[%q]}]}`, server)
		}
	}))
}
