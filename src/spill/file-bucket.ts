/** A bucket in a directory of this machine: the reference of the bucket port, and enough for nodes that share a disk. */

import type { SpillStore } from '../contract/history.js'
import { checkOptions, needed, type Shape, TEXT } from '../contract/options.js'
import { Refusal } from '../refusal.js'
import { type Bucket, createObjectSpillStore } from './object-store.js'

export interface FileBucketOptions {
  /** Where the objects are, one file each; made with the first one. */
  directory: string
}

/** File systems take 255 bytes for a name, and a key is one name. */
const NAME_BYTES = 200
const NAME = /^[A-Za-z0-9_%-]+$/

const isAbsent = (error: unknown) => (error as { code?: unknown }).code === 'ENOENT'

/** A bucket of files. Node, Bun and Deno; the file system is asked for with the first call. */
export function createFileBucket(options: FileBucketOptions): Bucket {
  checkOptions(options, { directory: needed(TEXT) } satisfies Shape<FileBucketOptions>)
  const { directory } = options
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
      // Whoever reads meanwhile sees the whole text or none.
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
