/** Answers without a part, of sources that say all the while that nothing has changed: for a moment, and then they are whole. */
import type { Inspectors } from '../../src/internal/contract/families.js'
import type { InspectionContext } from '../../src/internal/contract/page.js'
import { createFakeInspectors } from '../../src/testing/kits.js'
import { createWatched } from './subject.js'
import { connection, context } from './world.js'

type Cut = (page: object, ask: InspectionContext) => object

/** What is missing, where, and the source that brings it about. */
export const PARTIAL: [what: string, path: string, source: string, cut: Cut][] = [
  [
    'a source fails',
    '/users',
    'contextRegistry',
    () => {
      throw new Error('a moment')
    },
  ],
  ['a record cannot be shown', '/connections', 'registry', (page) => ({ ...page, omitted: 1 })],
  ['the list is cut', '/connections', 'registry', (page) => ({ ...page, items: [], truncated: true })],
  [
    'a host receives an error',
    '/connections',
    'registry',
    (page, { onError }) => {
      onError?.(new Error('a shard'))
      return { ...page, items: [] }
    },
  ],
]

/** A router over a source that returns partial results until `restore` is called. */
export function createPartial(source: string, cut: Cut) {
  const { registry, contextRegistry } = createFakeInspectors({ connections: [connection()], contexts: [context()] })
  const version = () => 'the same'
  let isTruncated = true
  const inspectors = { registry: { ...registry, version }, contextRegistry: { ...contextRegistry, version } }
  const watched = createWatched({ inspectors: inspectors as Inspectors }, ({ name, args, proceed }) => {
    if (!isTruncated || !name.startsWith(source) || name.endsWith('.version')) return proceed()
    return cut(proceed() as object, args.at(-1) as InspectionContext)
  })
  return {
    ...watched,
    restore() {
      isTruncated = false
    },
  }
}
