/** A spill store over any object storage: what a host with S3 or the like implements three calls for. */

import type { SpillStore } from '../contract/history.js'
import { encodePart } from '../contract/ids.js'
import { HYDRATION_BYTES } from '../contract/limits.js'
import { checkOptions, having, needed, type Shape, TEXT } from '../contract/options.js'

/** Object storage as S3 has it, reduced to what is needed. A client of a vendor fits with three one-line functions. */
export interface Bucket {
  putObject(input: { key: string; body: string }): Promise<void>
  /** `null` where there is none. Rejects for an object over `maxBytes` rather than read it. */
  getObject(input: { key: string; maxBytes: number; signal: AbortSignal }): Promise<string | null>
  deleteObject(input: { key: string }): Promise<void>
}

export interface ObjectSpillStoreOptions {
  bucket: Bucket
  /** What the key of every object starts with, unchanged; two deployments in one bucket need two. @default '' */
  prefix?: string
}

/** What a host may leave out when it reads a payload itself: it then has as much of one as a reader of the history. */
type ReadOptions = Parameters<SpillStore['get']>[1]

const OPTIONS: Shape<ObjectSpillStoreOptions> = {
  bucket: needed(having('putObject', 'getObject', 'deleteObject')),
  prefix: TEXT,
}

/**
 * A spill store in a bucket. A reference is percent-encoded, so that what somebody wrote into the store of the messages
 * names an object below the prefix and nothing else.
 *
 * @example
 * const spill = createObjectSpillStore({ bucket: createFileBucket({ directory: '/var/spill' }), prefix: 'prod-' })
 */
export function createObjectSpillStore(options: ObjectSpillStoreOptions): SpillStore {
  checkOptions(options, OPTIONS)
  const { bucket, prefix = '' } = options
  const keyOf = (ref: string) => prefix + encodePart(ref)
  // Async, so that a reference that cannot be one, and a client that throws at once, are rejections as all else is.
  return {
    put: async (ref, body) => bucket.putObject({ key: keyOf(ref), body }),
    get: async (ref, options: Partial<ReadOptions> = {}) => {
      const { signal = new AbortController().signal, maxBytes = HYDRATION_BYTES } = options
      return bucket.getObject({ key: keyOf(ref), signal, maxBytes })
    },
    delete: async (ref) => bucket.deleteObject({ key: keyOf(ref) }),
  }
}
