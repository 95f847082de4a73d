package manifest

import "penstock/infra/objectstore"

func check(owner, name string) error {
	if err := objectstore.CheckOwner(owner); err != nil {
		return err
	}
	return objectstore.CheckName(name)
}
