package topology

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

func TestMajority(t *testing.T) {
	fine := &jetstream.PeerInfo{Active: 300 * time.Millisecond}
	silent := &jetstream.PeerInfo{Active: time.Minute, Current: true}
	gone := &jetstream.PeerInfo{Offline: true}
	for _, c := range []struct {
		name  string
		peers []*jetstream.PeerInfo
		want  error
	}{
		{"a single server", nil, nil},
		{"all of three", []*jetstream.PeerInfo{fine, fine}, nil},
		{"two of three", []*jetstream.PeerInfo{fine, gone}, nil},
		{"one of three", []*jetstream.PeerInfo{silent, gone}, errMinority},
		{"three of five", []*jetstream.PeerInfo{fine, gone, fine, silent}, nil},
		{"two of five", []*jetstream.PeerInfo{gone, gone, fine, silent}, errMinority},
		{"one of two", []*jetstream.PeerInfo{silent}, errMinority},
	} {
		if got := majority(&jetstream.ClusterInfo{Replicas: c.peers}); !errors.Is(got, c.want) {
			t.Errorf("%s: %v, expected %v", c.name, got, c.want)
		}
	}
	if err := majority(nil); err != nil {
		t.Error(err)
	}
}
