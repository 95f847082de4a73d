package services

import "time"

// Component is a part of the application.
type Component struct {
	Name string
	// Work is the mean time that a request takes here, calls apart.
	Work time.Duration
	// Calls are those that it calls, one after another, by kind of request.
	Calls map[string][]string
}

// Kind is a kind of request from outside, to component web.
type Kind struct {
	Name string
	// Share of all requests, in percent.
	Share int
	// Write: it changes something, so it is POST, and no copy of it is ever sent.
	Write bool
}

// Components are all parts, callers before those that they call.
var Components = []Component{
	{Name: "web", Work: 4 * time.Millisecond, Calls: map[string][]string{
		"quote": {"quotes"}, "search": {"search"}, "portfolio": {"accounts"}, "buy": {"orders"},
	}},
	{Name: "quotes", Work: 3 * time.Millisecond},
	{Name: "search", Work: 8 * time.Millisecond},
	{Name: "orders", Work: 6 * time.Millisecond, Calls: map[string][]string{"buy": {"accounts"}}},
	{Name: "accounts", Work: 5 * time.Millisecond, Calls: map[string][]string{"portfolio": {"ledger"}, "buy": {"ledger"}}},
	{Name: "ledger", Work: 8 * time.Millisecond},
}

// Front is the component that is called from outside.
const Front = "web"

// Kinds are what people want of a broker: mostly to look.
var Kinds = []Kind{
	{Name: "quote", Share: 45},
	{Name: "search", Share: 20},
	{Name: "portfolio", Share: 20},
	{Name: "buy", Share: 15, Write: true},
}

// Find returns a component by its name.
func Find(name string) (Component, bool) {
	for _, c := range Components {
		if c.Name == name {
			return c, true
		}
	}
	return Component{}, false
}

// Callers are the components that call a component, in the order of Components.
func Callers(of string) (out []string) {
	for _, c := range Components {
		if c.calls(of) {
			out = append(out, c.Name)
		}
	}
	return out
}

func (c *Component) calls(name string) bool {
	for _, list := range c.Calls {
		for _, x := range list {
			if x == name {
				return true
			}
		}
	}
	return false
}

// known reports whether a kind of request exists.
func known(kind string) bool {
	for _, k := range Kinds {
		if k.Name == kind {
			return true
		}
	}
	return false
}
