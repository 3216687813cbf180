/** What others make of the OpenAPI document: a linter, and a generator of clients. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import openapiTS, { astToString } from 'openapi-typescript'
import ts from 'typescript'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openApiDocument } from '../../src/internal/diagnostics/openapi.js'

const document = openApiDocument()

describe('tools over the document', () => {
  let folder = ''
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'relayscope-openapi-'))
    await writeFile(join(folder, 'openapi.json'), JSON.stringify(document))
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  it('Redocly finds nothing to say under its strictest recommended rules', async () => {
    const redocly = join('node_modules', '.bin', 'redocly')
    const options = { env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' } }
    const lint = promisify(execFile)(
      redocly,
      ['lint', '--format=json', '--config', 'redocly.yaml', join(folder, 'openapi.json')],
      options,
    )
    const { stdout } = await lint.catch((failed: { stdout: string }) => failed)
    expect(JSON.parse(stdout)).toMatchObject({ totals: { errors: 0, warnings: 0 }, problems: [] })
  })

  it('a client that is generated from it compiles, and takes only what the routes take', async () => {
    await writeFile(join(folder, 'api.ts'), astToString(await openapiTS(JSON.stringify(document))))
    const client = `
      import type { components, operations, paths } from './api'
      type Listed = keyof paths
      type Ok<P extends Listed> = paths[P]['get']['responses'][200]['content']['application/json']
      declare function get<P extends Listed>(path: P, parameters: paths[P]['get']['parameters']): Promise<Ok<P>>
      export async function use(): Promise<(string | number | null)[]> {
        const { items, next_cursor } = await get('/contexts', { query: { status: 'idle', limit: 5 } })
        const { terminal } = await get('/delivery/status', { query: { user_id: 'a', client_id: 'b', command_id: 'c' } })
        const window: components['schemas']['BrowserWindow'] = await get('/browser-windows/{window_id}', { path: { window_id: 'w' } })
        const { completeness } = await get('/users', {})
        return [next_cursor, items[0]?.task_id ?? null, terminal?.reason ?? null, window.worker_count, completeness.examined.registry ?? 0]
      }
      // @ts-expect-error: not one of the values
      void get('/contexts', { query: { status: 'IDLE' } })
      // @ts-expect-error: user_id is required
      void get('/workers', { query: {} })
      // @ts-expect-error: no such route
      void get('/nope', {})
      export type Named = operations['listUsers']
    `
    const entry = join(folder, 'client.ts')
    await writeFile(entry, client)
    const program = ts.createProgram([entry], {
      strict: true,
      noEmit: true,
      types: [],
      target: ts.ScriptTarget.ES2022,
      module: ts.ModuleKind.ESNext,
      moduleResolution: ts.ModuleResolutionKind.Bundler,
      noUncheckedIndexedAccess: true,
    })
    const messages = ts
      .getPreEmitDiagnostics(program)
      .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'))
    expect(messages).toEqual([])
  })
})
