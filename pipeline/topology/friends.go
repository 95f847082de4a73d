package topology

import (
	"cmp"
	"context"
	"slices"

	"penstock/consumers/decider/placement"
	"penstock/producers/checkins"
	"penstock/producers/recording"
)

// ReadFriends reads a friends file as the policy needs it: each friendship both
// ways, one that stands twice at its greater level, ascending by owner and user,
// so that the configuration's digest follows from what the lines say and not from
// their order.
func ReadFriends(ctx context.Context, name string, bad func(recording.BadLine)) ([]placement.Friend, error) {
	var out []placement.Friend
	_, err := checkins.EachFriendship(ctx, name, bad, func(a, b string, level int64) {
		if a != b {
			out = append(out, placement.Friend{Owner: a, User: b, Level: level}, placement.Friend{Owner: b, User: a, Level: level})
		}
	})
	slices.SortFunc(out, func(a, b placement.Friend) int {
		return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.User, b.User), cmp.Compare(b.Level, a.Level))
	})
	out = slices.CompactFunc(out, func(a, b placement.Friend) bool { return a.Owner == b.Owner && a.User == b.User })
	return slices.Clip(out), err
}
