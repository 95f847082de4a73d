package route

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"penstock/schemas/control"
	"penstock/schemas/event"
)

var clouds = []Site{
	{"us-east", 37.3719, -79.8164}, {"us-central", 29.4167, -98.5}, {"us-west", 37.783, -122.417},
}

type place struct{ lat, lon float32 }

var (
	newYork = place{40.7, -74}
	dallas  = place{32.8, -97}
	seattle = place{47.6, -122.3}
)

func row(user, owner string, at *place) *event.Request {
	r := event.NewRequest(0)
	r.User, r.Owner = user, owner
	if at != nil {
		r.Lat, r.Lon = at.lat, at.lon
	}
	return &r
}

func table(t testing.TB, o Options) *Table {
	t.Helper()
	if o.Sites == nil {
		o.Sites = clouds
	}
	tab, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

func TestFollowServesNewOwnersNearTheFirstPlaceSeen(t *testing.T) {
	tab := table(t, Options{})
	for i, c := range []struct {
		row  *event.Request
		want string
		why  string
	}{
		{row("ann", "ann", &dallas), "us-central", "its own place, of this very row"},
		{row("ann", "ann", &seattle), "us-central", "where the data is, wherever ann goes"},
		{row("bob", "cat", &seattle), "us-west", "the requester's place: cat was never a user"},
		{row("cat", "cat", &newYork), "us-west", "cat's data is there already"},
		{row("bob", "dan", nil), "us-east", "no place: the first site"},
		{row("eve", "ann", &newYork), "us-central", "a reader moves nothing"},
		{row("ann", "eve", &seattle), "us-east", "eve has been a user: her first place, not ann's"},
		{row("ann", "", &seattle), "us-west", "nobody's data: near the requester"},
		{row("", "", nil), "us-east", "nothing is known"},
	} {
		tab.Route(c.row)
		if c.row.ToSite != c.want {
			t.Errorf("row %d is served at %s, expected %s: %s", i, c.row.ToSite, c.want, c.why)
		}
	}
	var fresh []string
	for _, o := range tab.Turn() {
		name, _, _ := tab.Owner(o)
		fresh = append(fresh, name)
	}
	if want := []string{"ann", "cat", "dan", "eve"}; !slices.Equal(fresh, want) {
		t.Errorf("new owners %v, expected %v", fresh, want)
	}
	if len(tab.Turn()) != 0 {
		t.Error("new owners were reported twice")
	}
}

func TestResidencyBindsNewOwners(t *testing.T) {
	tab := table(t, Options{Allowed: func(owner string) []bool {
		switch {
		case strings.HasPrefix(owner, "west-"):
			return []bool{false, false, true}
		case owner == "nowhere":
			return []bool{false, false, false}
		}
		return []bool{false, true, true}
	}})
	for _, c := range []struct{ owner, want string }{{"west-1", "us-west"}, {"x", "us-central"}, {"nowhere", ""}} {
		r := row("u", c.owner, &newYork)
		tab.Route(r)
		if r.ToSite != c.want {
			t.Errorf("%s is served at %q, expected %q", c.owner, r.ToSite, c.want)
		}
	}
	r := row("u", "nobody-placed", nil)
	tab.Route(r)
	if r.ToSite != "us-central" {
		t.Errorf("without a place at %q, expected the first allowed site", r.ToSite)
	}
}

func TestImportedLocationsComeFirstAndOutcomesMoveThem(t *testing.T) {
	tab := table(t, Options{Imported: map[string]control.Location{"ann": {Site: "us-west", Version: 3}}})
	at := func() string {
		r := row("ann", "ann", &newYork)
		tab.Route(r)
		return r.ToSite
	}
	if got := at(); got != "us-west" {
		t.Errorf("at %s, expected where the import says", got)
	}
	if tab.Apply("ann", "us-east", 3) || at() != "us-west" {
		t.Error("a move that is not above the known version took effect")
	}
	if !tab.Apply("ann", "us-east", 4) || at() != "us-east" {
		t.Error("a move above the known version took no effect")
	}
	if tab.Apply("ann", "mars", 5) || at() != "us-east" {
		t.Error("a move to a site that isn't there took effect")
	}
	if n := len(tab.Turn()); n != 1 {
		t.Errorf("%d new owners, expected the imported one once: its data must be made", n)
	}
	at()
	if len(tab.Turn()) != 0 {
		t.Error("an imported owner was reported twice")
	}
	_, err := New(Options{Sites: clouds, Imported: map[string]control.Location{"ann": {Site: "mars"}}})
	if !errors.Is(err, ErrSite) {
		t.Errorf("got %v, expected ErrSite", err)
	}
}

func TestRecordedTakesTheSiteThatServedMostOfTheFirstWindow(t *testing.T) {
	tab := table(t, Options{Mode: Recorded})
	send := func(owner, site string, n int) int32 {
		var o int32
		for range n {
			r := row("u", owner, &newYork)
			r.ToSite = site
			if o = tab.Route(r); r.ToSite != site {
				t.Fatalf("to_site %q became %q", site, r.ToSite)
			}
		}
		return o
	}
	a := send("a", "us-east", 2)
	send("a", "us-west", 3)
	b := send("b", "us-west", 1)
	send("b", "us-central", 1)
	c := send("c", "", 4)
	d := send("d", "elsewhere", 4)
	if _, site, _ := tab.Owner(a); site != None {
		t.Error("a site was known before the window's end")
	}
	if got := tab.Turn(); !slices.Equal(got, []int32{a, b}) {
		t.Errorf("owners %v got a site, expected %v", got, []int32{a, b})
	}
	send("a", "us-east", 9)
	send("c", "us-central", 1)
	if got := tab.Turn(); !slices.Equal(got, []int32{c}) {
		t.Errorf("owners %v got a site, expected %v", got, []int32{c})
	}
	for o, want := range map[int32]int{a: 2, b: 1, c: 1, d: None} {
		if name, site, _ := tab.Owner(o); site != want {
			t.Errorf("%s is at %d, expected %d", name, site, want)
		}
	}
}

func TestMarkedRowsTeachNothing(t *testing.T) {
	tab := table(t, Options{})
	r := row("ann", "ann", &seattle)
	tab.RouteMarked(r)
	if r.ToSite != "us-west" || tab.Len() != 0 {
		t.Errorf("served at %s, %d ids known; expected us-west and none", r.ToSite, tab.Len())
	}
	tab.Route(row("ann", "ann", &dallas))
	tab.RouteMarked(r)
	if r.ToSite != "us-central" {
		t.Errorf("served at %s, expected where the data is", r.ToSite)
	}
}

func BenchmarkRoute(b *testing.B) {
	tab := table(b, Options{})
	rows := make([]*event.Request, 4096)
	for i := range rows {
		rows[i] = row(fmt.Sprint("u", i*31%2500), fmt.Sprint("u", i*17%2500), &newYork)
	}
	b.ReportAllocs()
	for i := range b.N {
		tab.Route(rows[i&4095])
	}
}
