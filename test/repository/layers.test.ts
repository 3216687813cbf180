/** Checks file length and, in `src`, which layer may import which and which files only re-export. */
import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import { importsOf, readFiles, readSources, SOURCES, type SourceFile } from './imports.js'
import { circles, misdirected, unusedPermissions } from './layers.js'

const DEFECT = 600

const files = readSources()

/** A source tree of nothing but what each file says. */
function tree(texts: Record<string, string>): SourceFile[] {
  return Object.entries(texts).map(([path, text]) => ({ path, ...importsOf(path, text) }))
}

it.each(['src', 'test'])(`%s has no file over ${DEFECT} lines`, (folder) => {
  const measured = readFiles(folder, SOURCES)
  expect(measured.filter(({ lines }) => lines > DEFECT).map(({ path }) => path)).toEqual([])
})

it('the main entry has at most 25 values, and no schema', async () => {
  const values = Object.entries(await import('../../src/index.js'))
  expect(values.length).toBeLessThanOrEqual(25)
  expect(values.flatMap(([name, value]) => (value instanceof z.ZodType ? name : []))).toEqual([])
})

it.each(['src', 'test'])('%s cites no paper that is not in the repository', (folder) => {
  const cites = /\b(spec|ruling|contract, part|issue) #?\d/i
  expect(readFiles(folder, SOURCES).flatMap(({ path, text }) => (cites.test(text) ? [path] : []))).toEqual([])
})

describe('the layers of src', () => {
  it('point only where the direction table allows', () => {
    expect(misdirected(files)).toEqual([])
  })

  it('need every permission of the table', () => {
    expect(unusedPermissions(files)).toEqual([])
  })

  it('have no import circles', () => {
    expect(circles(files)).toEqual([])
  })

  it('have faces without code', () => {
    const faces = files.filter(({ path }) => /(^|\/)index\.ts$/.test(path))
    expect(faces.filter(({ faceOnly }) => !faceOnly).map(({ path }) => path)).toEqual([])
  })

  it('know no drawer for everything', () => {
    const drawers = /(^|\/)(types|utils?|helpers?|common|misc)(\.ts$|\/)/
    expect(files.map(({ path }) => path).filter((path) => drawers.test(path))).toEqual([])
  })
})

describe('the direction table', () => {
  it.each([
    ['a store in a view', { 'views/users.ts': "import '../memory/history.js'" }],
    ['a family in http', { 'http/read.ts': "import '../contract/history.js'" }],
    ['HTTP in a store', { 'memory/history/facility.ts': "import '../../http/problem.js'" }],
    ['one store in the other', { 'redis/history/facility.ts': "import '../../memory/rpc.js'" }],
    ['one family in another', { 'memory/delivery/facility.ts': "export * from '../rpc.js'" }],
    ['one family in another, however deep', { 'redis/contexts/a/b.ts': "import '../../delivery/facility.js'" }],
    ['a writer in a reader', { 'redis/contexts/inspector.ts': "import './facility.js'" }],
    ['a writer in the table', { 'redis/table/pages.ts': "import '../contexts/facility.js'" }],
    ['a family in the table', { 'redis/table/pages.ts': "import '../contexts/format.js'" }],
    ['the table in the store', { 'redis/store/store.ts': "import '../table/pages.js'" }],
    ['a family in another by type', { 'diagnostics/rpc.ts': "type A = import('./history.js').A" }],
    ['the face from inside', { 'contract/rpc.ts': "import type { A } from './index.js'" }],
    ['itty-router in a second file', { 'diagnostics/routes.ts': "import { Router } from 'itty-router'" }],
    ['Node where it must not be', { 'http/auth.ts': "import { timingSafeEqual } from 'node:crypto'" }],
    ['Node by a dynamic import', { 'diagnostics/router.ts': "await import('node:fs')" }],
    ['our own modules in an adapter', { 'adapters/node.ts': "import '../contract/page.js'" }],
    ['more than types in the browser', { 'browser/client.ts': "import { a } from '../cooperative-site/site.js'" }],
    ['the command line anywhere', { 'testing/fakes.ts': "import '../cli/main.js'" }],
    ['one plug in another', { 'plugs/ws/follow.ts': "import '../bullmq/inspectors.js'" }],
    ['a plug in what plugs share', { 'plugs/follow/writer.ts': "import '../ws/follow.js'" }],
    ['more than types of the contract in a plug', { 'plugs/ws/follow.ts': "import '../../contract/history.js'" }],
    ['a folder without a layer', { 'shared/a.ts': "import 'zod'" }],
    ['a Redis client in the library', { 'redis/store/client.ts': "import { createClient } from 'redis'" }],
  ])('refuses %s', (_what, texts) => {
    expect(misdirected(tree(texts))).toHaveLength(1)
  })

  it('allows the dependencies of the library', () => {
    const texts = {
      'http/query.ts': "import * as z from 'zod'; import { checkId } from '../contract/ids.js'",
      'http/match.ts': "import { Router } from 'itty-router'; import type { Prefix } from './target.js'",
      'browser/client.ts': "import type { Site } from '../contract/sites.js'",
      'adapters/express.ts': "import { toNodeHandler } from './node.js'; import 'node:http'",
      'memory/composition/facilities.ts': "import { createRpcCorrelator } from './rpc.js'; import './history.js'",
    }
    expect(misdirected(tree(texts))).toEqual([])
  })

  it('sees a circle', () => {
    const texts = { 'memory/a.ts': "import './b.js'", 'memory/b.ts': "export * from './a.js'" }
    expect(circles(tree(texts))).toEqual(['memory/a.ts → memory/b.ts → memory/a.ts'])
  })
})
