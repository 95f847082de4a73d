// Package assign finds the assignment of items to sites that costs least under
// soft capacities, or one close to it, and a bound on how close.
package assign
