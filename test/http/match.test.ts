/** Holds which route a path names, and what becomes of its parameters. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createTable } from '../../src/internal/http/match.js'
import { parsePrefix } from '../../src/internal/http/target.js'

const ROUTES = [
  { path: '/' },
  { path: '/files.json' },
  { path: '/notes' },
  { path: '/notes/count' },
  { path: '/notes/{note_id}' },
  { path: '/notes/{note_id}/lines/{line_id}' },
]

const table = createTable(parsePrefix('/a/b%2Fc'), ROUTES, { serve: (found) => [found?.route.path, found?.params] })
const find = (path: string) => table.fetch(`/a/b%2Fc${path}`)

it.each([
  ['', '/', {}],
  ['/', '/', {}],
  ['/files.json', '/files.json', {}],
  ['/notes', '/notes', {}],
  ['/notes/count', '/notes/count', {}],
  ['/notes/Count', '/notes/{note_id}', { note_id: 'Count' }],
  ['/notes/a%2Fb', '/notes/{note_id}', { note_id: 'a/b' }],
  ['/notes/%2525', '/notes/{note_id}', { note_id: '%25' }],
  ['/notes/%6eotes', '/notes/{note_id}', { note_id: 'notes' }],
  ['/notes/..', '/notes/{note_id}', { note_id: '..' }],
  ['/notes/%2e%2E', '/notes/{note_id}', { note_id: '..' }],
  ['/notes/a\\b', '/notes/{note_id}', { note_id: 'a\\b' }],
  ['/notes/~', '/notes/{note_id}', { note_id: '~' }],
  ['/notes/:note_id', '/notes/{note_id}', { note_id: ':note_id' }],
  ['/notes/%ff', '/notes/{note_id}', { note_id: null }],
  ['/notes/a/lines/%zz', '/notes/{note_id}/lines/{line_id}', { note_id: 'a', line_id: null }],
])('%j is %s', async (path, route, params) => {
  expect(await find(path)).toEqual([route, params])
})

it.each([
  '//',
  '/nope',
  '/Notes',
  '/notes/',
  '/notes//',
  '//notes',
  '/notes/count/',
  '/notes/a/',
  '/notes/a/lines',
  '/notes/a//lines/b',
  '/notes/a/lines/b/',
  '/notes/a/lines/b/c',
  '/filesxjson',
  '/%6eotes',
  '/notes/%63ount',
  '/notes/a/%6cines/b',
])('%j names nothing', async (path) => {
  expect(await find(path)).toEqual([undefined, undefined])
})

it('decodes a parameter exactly once, whatever it says', async () => {
  const segment = fc
    .string({ unit: 'grapheme', minLength: 1, maxLength: 12 })
    .filter((text) => text.isWellFormed() && text !== 'count')
  await fc.assert(
    fc.asyncProperty(segment, segment, async (note_id, line_id) => {
      const path = `/notes/${encodeURIComponent(note_id)}/lines/${encodeURIComponent(line_id)}`
      expect(await find(path)).toEqual(['/notes/{note_id}/lines/{line_id}', { note_id, line_id }])
      expect(await find(`/notes/${encodeURIComponent(note_id)}`)).toEqual(['/notes/{note_id}', { note_id }])
    }),
  )
})
