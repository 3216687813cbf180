/** What is made of the table of families: that it says of itself what the wire has promised, and how it grows. */
import { expect, it } from 'vitest'
import {
  CAPABILITIES,
  Capabilities,
  Capability,
  capabilitiesIn,
  SourceName,
} from '../../src/internal/contract/capabilities.js'
import { FAMILIES } from '../../src/internal/contract/families.js'

it('the booleans of the capabilities are eleven for good', () => {
  expect(Object.keys(Capabilities.shape).sort()).toEqual([
    'browser_window_registry',
    'context_registry',
    'dedup_per_user',
    'deduplicator',
    'delivery',
    'extensions',
    'history',
    'history_list_streams',
    'registry',
    'registry_connection_history',
    'rpc',
    'rpc_instance_check',
  ])
})

it('every family is a source, and every name stands for one thing', () => {
  const families = Object.values(FAMILIES)
  expect(SourceName.options).toEqual(families.map(({ capability }) => capability))
  expect(new Set(Capability.options).size).toBe(Capability.options.length)
  expect(new Set(families.map(({ facility }) => facility)).size).toBe(families.length)
  const components = families.flatMap((family) => Object.keys(family.components))
  expect(new Set(components).size).toBe(components.length)
})

it('an operation that has an inspector without it names the inspector', () => {
  expect(CAPABILITIES.inspectorOf('dedup_per_user')).toBe('deduplicator')
  expect(CAPABILITIES.inspectorOf('deduplicator')).toBe('deduplicator')
})

it('names in extensions.operations what came later, where it is there', () => {
  const { names, booleans, of } = capabilitiesIn({
    old: {
      facility: 'old',
      capability: 'old',
      methods: {},
      operations: { old_list: 'list' },
      listed: { 'old/summary': 'summary' },
      components: {},
    },
    notes: {
      facility: 'notes',
      capability: 'notes',
      methods: {},
      isListed: true,
      operations: { 'notes/count': 'count' },
      components: {},
    },
  })
  const method = () => expect.unreachable()
  expect([names, booleans]).toEqual([
    ['old', 'notes', 'old_list', 'old/summary', 'notes/count'],
    ['old', 'old_list'],
  ])
  expect(of({}, { host: 1 }, [])).toEqual({ old: false, old_list: false, extensions: { host: 1 } })
  expect(of({ old: { list: method, summary: method }, notes: {} }, { host: 1 }, ['of-all'])).toEqual({
    old: true,
    old_list: true,
    extensions: { host: 1, operations: ['notes', 'of-all', 'old/summary'] },
  })
})
