package catalog_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/catalog/catalogtest"
)

// victimEnv makes the test binary a process that writes a catalog until it is killed.
const victimEnv = "PENSTOCK_CATALOG_VICTIM"

const victims = 6 // writers of the victim, each with keys of its own

// victim writes, and says of each change when it begins ("try") and when it is
// acknowledged ("ack"): the writer, the key, and the version, "-" for a delete.
func victim(path string) {
	c, err := catalog.Open(path, catalog.Options{Coder: "objects"})
	if err != nil {
		fmt.Println("error", err)
		return
	}
	if err := c.CreateBucket(context.Background(), catalog.Bucket{Name: "b", Created: catalogtest.Epoch}); err != nil &&
		!errors.Is(err, catalog.ErrBucketExists) {
		fmt.Println("error", err)
		return
	}
	var group sync.WaitGroup
	var out sync.Mutex
	say := func(words ...any) {
		out.Lock()
		defer out.Unlock()
		fmt.Println(words...)
	}
	for w := range victims {
		group.Go(func() {
			for i := 0; ; i++ {
				key, id := fmt.Sprintf("w%d-%d", w, i%3), fmt.Sprintf("v%d-%d-%d", os.Getpid(), w, i)
				err := victimStep(c, w, i, key, id, say)
				if err != nil {
					say("error", err)
					return
				}
			}
		})
	}
	group.Wait()
}

func victimStep(c *catalog.Catalog, w, i int, key, id string, say func(...any)) error {
	ctx := context.Background()
	if i%5 == 4 {
		say("try", w, key, "-")
		if _, err := c.Delete(ctx, "b", key, nil); err != nil {
			return err
		}
		say("ack", w, key, "-")
		return nil
	}
	v := catalogtest.Version(id, 100, 3, "")
	if err := c.Begin(ctx, catalog.Intent{ID: id, Since: catalogtest.Epoch, Places: v.Places}); err != nil {
		return err
	}
	say("try", w, key, id)
	rest := catalog.Rest{Lacking: []int{2}}
	if i%2 == 0 {
		err := c.Put(ctx, catalog.PutInput{
			Bucket: "b", Version: v, Intents: []string{id}, Rest: rest,
			Record: catalog.Record{Key: key, Size: 100, ETag: id, Modified: catalogtest.Epoch},
		})
		if err != nil {
			return err
		}
		say("ack", w, key, id)
		return nil
	}
	upload := catalog.Upload{Bucket: "b", Key: key, ID: "u" + id, Created: catalogtest.Epoch}
	if err := c.CreateUpload(ctx, upload); err != nil {
		return err
	}
	part := catalog.Part{Number: 1, Size: 100, ETag: id, Modified: catalogtest.Epoch}
	if err := c.PutPart(ctx, catalog.PartInput{
		Bucket: "b", Key: key, Upload: upload.ID, Part: part, Version: v, Intents: []string{id}, Rest: rest,
	}); err != nil {
		return err
	}
	if _, err := c.CompleteUpload(ctx, catalog.CompleteInput{
		Bucket: "b", Key: key, Upload: upload.ID, Parts: []catalog.PartRef{{Number: 1}}, Modified: catalogtest.Epoch,
		Finish: func(r *catalog.Record, _ []catalog.Part) error {
			r.ETag = id
			return nil
		},
	}); err != nil {
		return err
	}
	say("ack", w, key, id)
	return nil
}

// TestKilled kills a writing process again and again at random points. Each acknowledged
// change is there, no other but the one under way is, none by half, and every blob whose
// intent was acknowledged is some version's or queued for deletion.
func TestKilled(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "catalog")
	kills := 6
	if os.Getenv("PENSTOCK_WHOLE") != "" {
		kills = 100
	}
	chance := rand.New(rand.NewPCG(1, 2))
	acked, begun := make(map[string]string), make(map[string]bool)
	for range kills {
		tried := runVictim(t, path, 20+chance.IntN(400), acked, begun)
		c, err := catalog.Open(path, catalog.Options{Coder: "objects"})
		must(t, err)
		verifyVictim(t, c, acked, tried, begun)
		must(t, c.Close())
	}
	if len(begun) < 100 {
		t.Errorf("only %d versions were written", len(begun))
	}
}

// runVictim runs a victim and kills it after so many lines. It updates what was acknowledged
// per key and gives what each writer was at.
func runVictim(t *testing.T, path string, lines int, acked map[string]string, begun map[string]bool) map[string]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), victimEnv+"="+path)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	tried := make(map[string]string)
	scanner := bufio.NewScanner(out)
	for n := 0; scanner.Scan(); n++ {
		if n == lines {
			must(t, cmd.Process.Kill()) // what it said before is still read
		}
		words := strings.Fields(scanner.Text())
		switch {
		case len(words) == 4 && words[0] == "try":
			tried[words[2]] = words[3]
			if words[3] != "-" {
				begun[words[3]] = true
			}
		case len(words) == 4 && words[0] == "ack":
			acked[words[2]] = words[3]
			delete(tried, words[2])
		case len(words) > 0 && words[0] == "error":
			t.Fatal(scanner.Text())
		} // else a line that was cut off by the kill
	}
	_ = cmd.Wait() // killed
	return tried
}

func verifyVictim(t *testing.T, c *catalog.Catalog, acked, tried map[string]string, begun map[string]bool) {
	t.Helper()
	report, err := c.Check(t.Context())
	must(t, err)
	if report.Found > 0 || report.Stored.Intents > 0 {
		t.Fatalf("after a kill: %+v", report)
	}
	for key, want := range acked {
		got := "-"
		if r, err := c.Get("b", key); err == nil {
			got = r.ETag
		} else {
			wants(t, err, catalog.ErrNoKey)
		}
		if other, underWay := tried[key]; got != want && (!underWay || got != other) {
			t.Fatalf("%s holds %s; %s was acknowledged and %q under way", key, got, want, other)
		}
		acked[key] = got
	}
	for id := range begun {
		v := catalogtest.Version(id, 100, 3, "")
		if _, rest, err := c.Version(id); err == nil {
			if len(rest.Lacking) != 1 {
				t.Fatalf("version %s lacks %v", id, rest.Lacking)
			}
			continue
		}
		for _, p := range v.Places {
			if n, err := c.Discard(t.Context(), id, p); n > 0 || err != nil {
				t.Fatalf("nobody knows of %s/%s (%v)", p.Store, p.Key, err)
			}
		}
	}
}
