package experiment

import (
	"compress/gzip"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"penstock/infra/shareddata"
	"penstock/schemas/sphere"
)

// sharedClouds is the folder of the two measured data sets.
func sharedClouds(t *testing.T) string {
	t.Helper()
	shareddata.Dir(t, "cloud-regions-coords")
	return filepath.Dir(shareddata.Dir(t, "clouds-skyplane"))
}

func TestMeasuredTablesAreReadAsTheyAre(t *testing.T) {
	dir := sharedClouds(t)
	m, err := loadMeasured(dir)
	if err != nil {
		t.Fatal(err)
	}
	// The source counts 69 regions, 21 of whom have a round trip to themselves, and
	// 4,692 pairs of the premium tier, all but the diagonal.
	if m.taken.Regions != 69 || m.taken.Pairs != 69*68 || m.taken.Unplaced != 0 || m.taken.Reversed != 0 {
		t.Errorf("took %+v, expected 69 regions and all %d pairs", m.taken, 69*68)
	}
	if m.self < 0.5 || m.self > 2 {
		t.Errorf("%v ms inside a region", m.self)
	}
	at := func(from, to string) float64 { return m.rtt[m.index[from]][m.index[to]] }
	if got := at("aws:eu-north-1", "azure:eastus"); got != 105.976 {
		t.Errorf("from aws:eu-north-1 to azure:eastus: %v ms, the file says 105.976", got)
	}
	// They are not symmetric: many pairs differ by more than a ms by direction.
	lopsided := 0
	for i := range m.rtt {
		for j := range i {
			if math.Abs(m.rtt[i][j]-m.rtt[j][i]) > 1 {
				lopsided++
			}
		}
	}
	if lopsided < 200 {
		t.Errorf("%d pairs differ by direction, expected hundreds", lopsided)
	}
	if usd := m.usd[m.index["aws:af-south-1"]][m.index["aws:ap-east-1"]]; usd != 0.147 {
		t.Errorf("from aws:af-south-1 to aws:ap-east-1: $%v a GB, the file says 0.147", usd)
	}
	p, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	c, err := loadClouds(dir, p.Clouds)
	if err != nil {
		t.Fatal(err)
	}
	dublin := 6
	n := table{m, c.chosen}
	if got, want := n.RTT(53.3497645, -6.2602732, dublin), sphere.RTT(0)+m.self; math.Abs(got-want) > 1e-6 {
		t.Errorf("from Dublin to %s: %v ms, expected about %v", p.Clouds.Regions[dublin], got, want)
	}
}

// write makes a folder of measured tables; latency and cost are CSV.
func write(t *testing.T, latency, cost, aws string) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{"clouds-skyplane", "cloud-regions-coords"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, body := range map[string]string{"latency.csv.gz": latency, "cost.csv.gz": cost} {
		f, err := os.Create(filepath.Join(dir, "clouds-skyplane", name))
		if err != nil {
			t.Fatal(err)
		}
		z := gzip.NewWriter(f)
		if _, err := z.Write([]byte(body)); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(z.Close(), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	for name, body := range map[string]string{"aws": aws, "azure": "region,lat,lon\n", "gcp": "region,lat,lon\nw,1,10\n"} {
		if err := os.WriteFile(filepath.Join(dir, "cloud-regions-coords", name+".csv"), []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	latencyHead = "src_region,src_tier,dst_region,dst_tier,min_rtt,avg_rtt\n"
	costHead    = "src,dest,src_tier,dest_tier,cost\n"
	awsRows     = "region,lat,lon\na,0,0\nb,0,20\nghost,,\n"
	latencyRows = latencyHead +
		"aws:a,PREMIUM,aws:b,PREMIUM,9,10\n" +
		"aws:b,PREMIUM,gcp:w-c,PREMIUM,29,30\naws:b,STANDARD,gcp:w-c,PREMIUM,1,2\n" +
		"gcp:w-c,PREMIUM,aws:a,PREMIUM,19,20\naws:a,PREMIUM,gcp:w-c,PREMIUM,20,21\n" +
		"aws:ghost,PREMIUM,aws:a,PREMIUM,3,4\n" +
		"gcp:w-c,PREMIUM,gcp:w-c,STANDARD,1.5,300\n"
	costRows = costHead + "aws:a,aws:b,PREMIUM,PREMIUM,0.02\naws:b,aws:a,PREMIUM,PREMIUM,0.03\n"
)

// TestWhatIsTakenOfMeasuredTables: the premium tier, one direction where the
// other is missing, zones by their region's coordinates, no region without.
func TestWhatIsTakenOfMeasuredTables(t *testing.T) {
	m, err := loadMeasured(write(t, latencyRows, costRows, awsRows))
	if err != nil {
		t.Fatal(err)
	}
	want := taken{Regions: 3, Pairs: 6, Reversed: 2, OtherTier: 1, Unplaced: 1, Selves: 1, Prices: 2}
	if m.taken != want {
		t.Errorf("took %+v, expected %+v", m.taken, want)
	}
	at := func(from, to string) float64 { return m.rtt[m.index[from]][m.index[to]] }
	for _, c := range []struct {
		from, to string
		ms       float64
	}{
		{"aws:a", "aws:b", 10},
		{"aws:b", "aws:a", 10},
		{"aws:b", "gcp:w-c", 30},
		{"gcp:w-c", "aws:b", 30},
		{"gcp:w-c", "aws:a", 20},
		{"aws:a", "gcp:w-c", 21},
		{"aws:a", "aws:a", 1.5},
	} {
		if got := at(c.from, c.to); got != c.ms {
			t.Errorf("from %s to %s: %v ms, expected %v", c.from, c.to, got, c.ms)
		}
	}
	// A user nearest to b asks site a: its way to b, and from b to a.
	n := table{m, []int{m.index["aws:a"]}}
	if got, want := n.RTT(0, 19, 0), sphere.RTT(sphere.Km(0, 19, 0, 20))+10; math.Abs(got-want) > 1e-9 {
		t.Errorf("%v ms, expected %v", got, want)
	}
}

func TestFaultsOfMeasuredTablesAreNamed(t *testing.T) {
	for _, c := range []struct{ name, latency, cost, aws, want string }{
		{"no column", "src,dst\n", costRows, awsRows, "no column src_region"},
		{"no number", latencyRows + "aws:a,PREMIUM,aws:b,PREMIUM,9,far\n", costRows, awsRows, "line 9"},
		{"negative price", latencyRows, costHead + "aws:a,aws:b,PREMIUM,PREMIUM,-1\n", awsRows, "cost: got -1"},
		{"bad coordinates", latencyRows, costRows, "region,lat,lon\na,north,0\n", "aws.csv line 2"},
		{"nothing inside a region", latencyHead + "aws:a,PREMIUM,aws:b,PREMIUM,9,10\n", costRows, awsRows, "0 round trips inside a region"},
		{"site that isn't there", latencyRows, costRows, awsRows, `no region "aws:z"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := loadClouds(write(t, c.latency, c.cost, c.aws), Clouds{Share: 1, Regions: []string{"aws:a", "aws:z"}})
			if !errors.Is(err, ErrData) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, expected ErrData that names %q", err, c.want)
			}
		})
	}
	if _, err := loadMeasured(t.TempDir()); !errors.Is(err, ErrData) {
		t.Errorf("an empty folder: %v, expected ErrData", err)
	}
}
