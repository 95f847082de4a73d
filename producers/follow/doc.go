// Package follow reads log files as they grow and publishes their lines as
// requests (DESIGN §3, §3.1): each line of each file once, whatever is done to the
// files, and whatever the point at which the process is killed.
//
// # Streams
//
// A stream is the content of one log file, whatever it is called by now. It is
// known by where it lies (device and inode) and by a fingerprint of its first
// 1,024 bytes, and it is compared with that after each read: an inode that was
// used again and a file that was truncated and has grown again are other content.
//
//		            its path leads elsewhere            quiet for Linger
//		  ┌─▶ live ──────────────────────────▶ moved ─────────────────────▶ done
//		  │    │ truncated, or not there any more │ gone, and not open        ▲
//		  │    ▼                                  ▼                           │
//		  │   lost ◀──────────────────────────────┘                           │
//		  │    │ a copy begins with the fingerprint, and has the same          │
//		  │    ▼ bytes before the position; compressed or not                  │
//		  │  copied ──────────────────────────────────────────────────────────┘
//		  │            read to its end
//		  └── a path that a glob finds, or a rotated file that nobody has ever seen
//
//	  - renamed: the open file is read on, and watched for Linger, for servers open
//	    the new one late. The new one is a new stream.
//	  - truncated after a copy was made: the rest of the old content is read from
//	    the copy, the new content from its beginning.
//	  - compressed: what was not read yet is read from the compressed file (gzip,
//	    zstd, bzip2), at the position in the content.
//	  - rotated twice while nobody looked: files of the family (see familyOf) that
//	    were changed since it is followed, and are a copy of nothing that is known,
//	    are read from their beginning.
//	  - its end cut off, as by a power cut: reading goes on at its end.
//
// A compressed or rotated file that a glob finds is read as any other, once; a copy
// of what was read is not.
//
// # Position
//
// All streams' positions are one value, committed together with the rows that
// were read up to there (publisher.Commit). A position is behind a line end: the
// beginning of a line waits for its end, or until the file is surely done. Where a
// parser holds parts of a row (ErrPart) reading goes on before the first of them
// after a start, and what was published since is passed over.
// A line may hold several rows; a group may end between them.
//
// # Time
//
// Horizon: horizonOf. Rows are marked late against the horizon and future against
// the clock.
//
// # Looking
//
// Files are polled, more often the more is going on, at least every PollMost; what
// the system tells of changes (inotify and its kin) only makes a look come
// earlier. One buffer is used for all files, at most MaxOpen are open.
//
// # Failures
//
// A file that cannot be read is tried again and said once; it holds nothing up. A
// line that is no row is counted as malformed, sampled on REJECTS, and passed. A
// file whose first 100 lines are all malformed, or of which no parser can be made,
// is refused until the next start; the others go on. A disk that is full is waited
// for. Run returns the publisher's other errors.
//
// What is lost all the same, and cannot be told by who reads:
//   - lines that a server writes between the copy and the truncation of copytruncate;
//   - lines of a file that is deleted while no follower has it open;
//   - what was read of standard input and not committed, when the process is killed;
//   - lines written to a renamed file after it was quiet for Linger and was renamed
//     out of the folder, or compressed meanwhile.
//
// Two files whose first 1,024 bytes and the bytes before the position are equal
// are one to it, where one is called like a rotated copy of the other.
package follow
