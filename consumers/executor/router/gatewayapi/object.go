package gatewayapi

import "cmp"

// key names an HTTPRoute.
type key struct{ namespace, name string }

// object is what is read of an HTTPRoute. What is not here is never written.
type object struct {
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
		Generation      int64  `json:"generation"`
	} `json:"metadata"`
	Spec struct {
		Rules []rule `json:"rules"`
	} `json:"spec"`
	Status struct {
		Parents []parent `json:"parents"`
	} `json:"status"`
}

type rule struct {
	Name        string `json:"name"`
	BackendRefs []ref  `json:"backendRefs"`
}

type ref struct {
	Group     string `json:"group"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Port      int    `json:"port"`
	Weight    *int64 `json:"weight"`
}

// weight of a backendRef; the schema's default is 1.
func (r *ref) weight() int64 {
	if r.Weight == nil {
		return 1
	}
	return *r.Weight
}

// is says whether a reference, in a route of a namespace, refers to a backend.
func (r *ref) is(b Backend, namespace string) bool {
	return r.Group == b.Group && cmp.Or(r.Kind, "Service") == b.Kind && cmp.Or(r.Namespace, namespace) == b.Namespace &&
		r.Name == b.Name && (b.Port == 0 || r.Port == b.Port)
}

// parent is what one gateway says of a route.
type parent struct {
	ControllerName string      `json:"controllerName"`
	Conditions     []condition `json:"conditions"`
}

type condition struct {
	Type               string `json:"type"`
	Status             string `json:"status"`
	ObservedGeneration int64  `json:"observedGeneration"`
	Reason             string `json:"reason"`
	Message            string `json:"message"`
}

// says is what a gateway says about a version of the route, or a later one; false
// if it has not said it yet.
func (p *parent) says(kind string, generation int64) (c condition, ok bool) {
	for _, c := range p.Conditions {
		if c.Type == kind {
			return c, c.ObservedGeneration >= generation
		}
	}
	return c, false
}

// holds says whether a condition is true of a version, or a later one.
func (p *parent) holds(kind string, generation int64) bool {
	c, ok := p.says(kind, generation)
	return ok && c.Status == "True"
}

// slots are the places of the backendRefs that stand for a rule's sites. A site has
// several where a rule names its backend several times, with other filters.
type slots map[string][]int

func (r *Route) slots(refs []ref) slots {
	found := slots{}
	for i := range refs {
		for site, b := range r.Backends {
			if refs[i].is(b, r.Namespace) {
				found[site] = append(found[site], i)
			}
		}
	}
	return found
}

// weights of a rule's sites, in the order of their slots.
func (s slots) weights(refs []ref) map[string][]int64 {
	all := make(map[string][]int64, len(s))
	for site, places := range s {
		for _, i := range places {
			all[site] = append(all[site], refs[i].weight())
		}
	}
	return all
}

// foreign is the weight of the backendRefs that stand for no site.
func (s slots) foreign(refs []ref) int64 {
	var sum int64
	for i := range refs {
		sum += refs[i].weight()
	}
	return sum - total(s.weights(refs))
}

func total(weights map[string][]int64) int64 {
	var sum int64
	for _, all := range weights {
		for _, w := range all {
			sum += w
		}
	}
	return sum
}
