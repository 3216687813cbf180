/** The types as a strict consumer's compiler reads them: no library check is skipped, no types but ours are there. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Consumer, createConsumer, ROOT, runIn } from './consumer.js'

const TSC = join(ROOT, 'node_modules/typescript/bin/tsc')

/** The contract's opening example, and each adapter in the shape that its host wants. */
const PROGRAM = `
import { createDiagnosticsRouter, resolveAdminAuth, type Connection, type Inspectors, Refusal } from 'relayscope'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'
import { createFakeInspectors } from 'relayscope/testing'
import { toNodeHandler } from 'relayscope/node'
import { toExpressMiddleware } from 'relayscope/express'
import { toHonoHandler } from 'relayscope/hono'
import { toDenoHandler } from 'relayscope/deno'
import { Hono } from 'hono'

const facilities = createMemoryFacilities()
const diagnostics = createDiagnosticsRouter({
  ...memoryComposition(facilities),
  auth: resolveAdminAuth({ strict: true, host: '127.0.0.1' }),
  prefix: '/ops/diagnostics',
})
export const answer: Promise<Response> = diagnostics(new Request('http://localhost/ops/diagnostics/capabilities'))
export const owned: boolean = diagnostics.owns('/ops/diagnostics')
export const fakes: Inspectors = createFakeInspectors({ connections: [] as Connection[] })
export const refusal = new Refusal('unavailable', 'the store is away')
export const mounts = [toNodeHandler(diagnostics), toExpressMiddleware(diagnostics), toDenoHandler(diagnostics)]
new Hono().use(toHonoHandler(diagnostics)).all('/ops/*', toHonoHandler(diagnostics))
export const worker: { fetch(request: Request): Promise<Response> } = diagnostics
// @ts-expect-error there is no silent default
createDiagnosticsRouter({ inspectors: {} })
`

const ON_NODE = `
import { createServer } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { toNodeHandler } from 'relayscope/node'

const handler = toNodeHandler((request, { remoteAddress }) => new Response(request.url + (remoteAddress ?? '')))
export const servers = [createServer(handler), createSecureServer({}, handler)]
`

describe('the types of the package', () => {
  let consumer: Consumer
  beforeAll(async () => {
    consumer = await createConsumer(['hono', '@types/node', 'undici-types'])
    const all = consumer.subpaths.filter((path) => path !== 'relayscope/control-server')
    const alone = all.map((path, i) => `export * as part${i} from '${path}'`)
    await writeFile(join(consumer.dir, 'portable.ts'), `${PROGRAM}${alone.join('\n')}\n`)
    await writeFile(join(consumer.dir, 'on-node.ts'), `${ON_NODE}export * from 'relayscope/control-server'\n`)
  })
  afterAll(() => consumer?.remove())

  const modes = [
    { resolution: 'node16', module: 'node16' },
    { resolution: 'nodenext', module: 'nodenext' },
    { resolution: 'bundler', module: 'esnext' },
  ]

  async function compile(file: string, types: string[], { resolution, module }: (typeof modes)[number]) {
    const config = `tsconfig.${file}.${resolution}.json`
    const compilerOptions = {
      module,
      moduleResolution: resolution,
      target: 'es2023',
      lib: ['es2023', 'dom', 'dom.iterable', 'dom.asynciterable'],
      types,
      strict: true,
      exactOptionalPropertyTypes: true,
      skipLibCheck: false,
      noEmit: true,
    }
    await writeFile(join(consumer.dir, config), JSON.stringify({ compilerOptions, files: [file] }))
    return runIn(consumer, process.execPath, [TSC, '-p', config]).catch((error: { stdout: string }) => error.stdout)
  }

  it.each(modes)('resolve under $resolution, without the types of Node', async (mode) => {
    expect(await compile('portable.ts', [], mode)).toBe('')
  })

  it('fit the servers of Node, the control server included', async () => {
    expect(await compile('on-node.ts', ['node'], { resolution: 'nodenext', module: 'nodenext' })).toBe('')
  })
})
