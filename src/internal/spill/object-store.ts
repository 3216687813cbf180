/** Spill stores over any object storage, and a bucket in a directory of this machine: the reference of the bucket port. */

import type { SpillStore } from '../contract/history.js'
import { encodePart } from '../contract/ids.js'
import { HYDRATION_BYTES } from '../contract/limits.js'
import { defineOptions, type Input, readOptions, text, withMethods } from '../contract/options.js'
import { Refusal } from '../refusal.js'

/** A minimal S3-like object store. A vendor client fits with three one-line functions. */
export interface Bucket {
  /** Stores an object, replacing any previous one. */
  putObject(input: { key: string; body: string }): Promise<void>
  /** Returns the object or `null` if it does not exist. Rejects for an object over `maxBytes` instead of reading it. */
  getObject(input: { key: string; maxBytes: number; signal: AbortSignal }): Promise<string | null>
  /** Deletes an object, if it exists. */
  deleteObject(input: { key: string }): Promise<void>
}

/** Options of `createObjectSpillStore`. */
export const ObjectSpillStoreOptions = defineOptions({
  /** Object storage for the payloads. */
  bucket: withMethods<Bucket>('putObject', 'getObject', 'deleteObject'),
  /** Prefix of every object key; two deployments in one bucket need different ones. @default '' */
  prefix: text().default(''),
})
export interface ObjectSpillStoreOptions extends Input<typeof ObjectSpillStoreOptions> {}

/** Options a host may omit when it reads a payload directly: the limits are then those of a history reader. */
type ReadOptions = Parameters<SpillStore['get']>[1]

/**
 * Creates a spill store in a bucket. References are percent-encoded, so that a reference written into the message store
 * by someone else can only name an object below the prefix.
 *
 * @example
 * const spill = createObjectSpillStore({ bucket: { putObject, getObject, deleteObject }, prefix: 'prod-' })
 */
export function createObjectSpillStore(options: ObjectSpillStoreOptions): SpillStore {
  const { bucket, prefix } = readOptions(ObjectSpillStoreOptions, options)
  const keyOf = (ref: string) => prefix + encodePart(ref)
  // Async, so that invalid references and synchronous errors of the client become rejections.
  return {
    put: async (ref, body) => bucket.putObject({ key: keyOf(ref), body }),
    get: async (ref, options: Partial<ReadOptions> = {}) => {
      const { signal = new AbortController().signal, maxBytes = HYDRATION_BYTES } = options
      return bucket.getObject({ key: keyOf(ref), signal, maxBytes })
    },
    delete: async (ref) => bucket.deleteObject({ key: keyOf(ref) }),
  }
}

/** Options of `createFileSpillStore`. */
export const FileBucketOptions = defineOptions({
  /** Directory of the objects, one file each; created on the first write. */
  directory: text(),
})
export interface FileBucketOptions extends Input<typeof FileBucketOptions> {}

/** File systems take 255 bytes for a name, and a key is one name. */
const NAME_BYTES = 200
const NAME = /^[A-Za-z0-9_%-]+$/

const isAbsent = (error: unknown) => (error as { code?: unknown }).code === 'ENOENT'

/** Creates a bucket of files for Node, Bun and Deno. The file system module is loaded on the first call. */
export function createFileBucket(options: FileBucketOptions): Bucket {
  const { directory } = readOptions(FileBucketOptions, options)
  const files = () => import('node:fs/promises')

  function pathOf(key: string): string {
    if (!NAME.test(key) || key.length > NAME_BYTES)
      throw new Refusal('invalid_input', `a key must match ${NAME.source} and have at most ${NAME_BYTES} characters`)
    return `${directory}/${key}.json`
  }

  return {
    async putObject({ key, body }) {
      const path = pathOf(key)
      const { mkdir, rename, writeFile } = await files()
      await mkdir(directory, { recursive: true })
      // Written to a draft and renamed, so that readers see the whole text or nothing.
      const draft = `${path}.${crypto.randomUUID()}.draft`
      await writeFile(draft, body, { mode: 0o600 })
      await rename(draft, path)
    },
    async getObject({ key, maxBytes, signal }) {
      const path = pathOf(key)
      const { readFile, stat } = await files()
      try {
        if ((await stat(path)).size > maxBytes) throw new Refusal('payload_too_large')
        return await readFile(path, { encoding: 'utf8', signal })
      } catch (error) {
        if (isAbsent(error)) return null
        throw error
      }
    },
    async deleteObject({ key }) {
      const { rm } = await files()
      await rm(pathOf(key), { force: true })
    },
  }
}

/**
 * A spill store in a directory that all nodes of a deployment and its observers share.
 *
 * @example
 * const spill = createFileSpillStore({ directory: '/var/spill/prod' })
 */
export function createFileSpillStore(options: FileBucketOptions): SpillStore {
  return createObjectSpillStore({ bucket: createFileBucket(options) })
}
