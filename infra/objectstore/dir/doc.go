// Package dir keeps people's data in a folder: the object store that needs
// nothing but a disk.
//
//	ROOT/alice/photos/1.jpg            object photos/1.jpg of owner alice
//	ROOT/b64=YUBiLmNvbQ/…              owner a@b.com, encoded as on the bus
//	ROOT/b64=AAAA…~/AAAA…/…            an encoded name over 200 bytes, in pieces
//	ROOT/alice/.penstock-mark          what the copy is (objectstore.Mark)
//	ROOT/alice/.penstock-tmp-…         an object being written
//
// An owner is there when its folder is. Its objects are the regular files below
// it; their names are their paths. Names that begin with ".penstock" are ours.
// Everything else (links, sockets, folders at ROOT that are no encoded name) is
// foreign: it is neither listed, nor moved, nor deleted, and keeps the folder it
// lies in.
//
// Objects are written to a temporary file and renamed. With Options.Sync, the
// default of Open, file and folder are synced before a write is acknowledged;
// without it a write survives the death of the process but not that of the
// machine, and Capabilities says so.
//
// The write barrier is a lock in this process and an exclusive flock on the
// owner's folder, so that every process that goes through this package respects
// it. Programs that write into the folders by themselves do not. The folder must
// be on a local file system.
//
// An object's version is its size, modification time and inode; Put makes the
// time ascend, so that two writes in one tick of the file system differ.
package dir
