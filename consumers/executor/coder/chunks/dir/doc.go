// Package dir keeps blobs in a folder: the store that needs nothing else.
//
// A key a/b/c is the file a/b/c~. The tilde, which no key has, lets a blob a/b lie
// beside it; the order of keys is that of the names. A blob is written under .new, on
// disk before it is renamed into its place, and its folder is on disk before Put
// returns. Everything goes through one os.Root: not even a link that somebody puts into
// the folder leads out of it. Folders that a deletion leaves empty are removed.
//
// States: open until Close. Failures: those of package chunks and of the file system.
// Open removes what a crash left under .new. Several processes may have one folder, as
// long as they give different keys: each has a locked file under .new, by whose name the
// others know what is still being written.
//
// A folder that is deleted while it is open, or whose file system goes, fails all calls:
// what was in it is neither not there nor deleted. When there is a folder of that name
// again it is the store, whatever is in it.
package dir
