/**
 * Mounts the routes of docs/mounting.md in Elysia and in h3, the server of Nitro and Nuxt, and the router as docs/mounting.md
 * says in NestJS on both of its platforms, and follows a gateway of NestJS as docs/acknowledgements.md says. Asks them over HTTP.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { createDiagnosticsRouter, resolveAdminAuth } from 'relayscope'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'
import { toNodeHandler } from 'relayscope/node'
import { io as connect } from 'socket.io-client'

const KEY = 'the-key-of-the-frameworks'
process.env.SERVICE_ADMIN_KEY = KEY

/** NestJS on its other platform. Returns the address of the router. */
async function startNestOnFastify() {
  const [{ Controller, Get, Module }, { NestFactory }, { FastifyAdapter }] = await Promise.all(
    ['@nestjs/common', '@nestjs/core', '@nestjs/platform-fastify'].map((name) => import(name)),
  )
  class HostController {
    own() {
      return 'the host’s own'
    }
  }
  Get()(HostController.prototype, 'own', Object.getOwnPropertyDescriptor(HostController.prototype, 'own'))
  Controller()(HostController)
  class AppModule {}
  Module({ controllers: [HostController] })(AppModule)
  const { connections } = createMemoryFacilities()
  const auth = resolveAdminAuth({ strict: true, host: '127.0.0.1' })
  const mount = toNodeHandler(
    createDiagnosticsRouter({ ...memoryComposition({ connections }), auth, prefix: '/ops/diagnostics' }),
  )
  const serverFactory = (handle) => createServer((req, res) => mount(req, res, () => handle(req, res)))
  const app = await NestFactory.create(AppModule, new FastifyAdapter({ serverFactory }), { logger: false })
  await app.listen(0, '127.0.0.1')
  return `${await app.getUrl()}/ops/diagnostics/`
}

const FRAMEWORKS = {
  async elysia() {
    const [{ Elysia }, { ops }] = await Promise.all([import('elysia'), import('./elysia.mjs')])
    const app = new Elysia().use(ops)
    return (path, headers) => app.handle(new Request(`http://localhost${path}`, { headers }))
  },
  async nitro() {
    const { createApp, createRouter, defineEventHandler, toNodeListener, toWebRequest } = await import('h3')
    // Nitro imports these two by itself.
    Object.assign(globalThis, { defineEventHandler, toWebRequest })
    const { default: handler } = await import('./server/routes/ops/[...path].js')
    const server = createServer(toNodeListener(createApp().use(createRouter().get('/ops/**', handler))))
    server.listen(0, '127.0.0.1').unref()
    await once(server, 'listening')
    return (path, headers) => fetch(`http://127.0.0.1:${server.address().port}${path}`, { headers })
  },
}

for (const [name, start] of Object.entries(FRAMEWORKS)) {
  const ask = await start()
  assert.equal((await ask('/ops/diagnostics/connections')).status, 403, name)
  const answer = await ask('/ops/diagnostics/connections', { 'x-admin-key': KEY })
  assert.deepEqual([answer.status, (await answer.json()).items], [200, []], name)
  assert.match(await (await ask('/ops/dashboard/')).text(), /data-api="\.\.\/\.\.\/ops\/diagnostics"/, name)
  assert.equal((await ask('/ops/none')).status, 404, name)
  console.log(`${name}: answers diagnostics with the key, the dashboard, and nothing else`)
}

/** Starts a program. Returns the address that it prints when it listens. */
async function start(program) {
  const child = spawn(process.execPath, [program, '0'], { stdio: ['ignore', 'pipe', 'inherit'] })
  process.on('exit', () => child.kill())
  for await (const line of createInterface(child.stdout)) {
    const [url] = /http:\S+/.exec(line) ?? []
    if (url) return url
  }
}
const urls = { nestjs: await start('nestjs.mjs'), 'nestjs on Fastify': await startNestOnFastify() }
for (const [name, url] of Object.entries(urls)) {
  assert.equal((await fetch(`${url}connections`)).status, 403, name)
  const answer = await fetch(`${url}connections`, { headers: { 'x-admin-key': KEY } })
  assert.deepEqual([answer.status, (await answer.json()).items], [200, []], name)
  assert.equal(await (await fetch(new URL('/', url))).text(), 'the host’s own', name)
  console.log(`${name}: answers diagnostics with the key, and the host its own paths`)
}

/** Asks the router at `url` until it shows one record at `path`. */
async function untilShown(url, path) {
  for (;;) {
    const { items } = await (await fetch(url + path, { headers: { 'x-admin-key': KEY } })).json()
    if (items.length === 1) return items[0]
    await sleep(100)
  }
}
const gateway = await start('nestjs-gateway.mjs')
const socket = connect(new URL(gateway).origin, { auth: { user: 'ada', client: 'laptop', instance: 'run-1' } })
const [, acknowledge] = await new Promise((resolve) => socket.on('sync', (...sent) => resolve(sent)))
const { action, client_id, direction } = await untilShown(gateway, 'rpc/pending')
assert.deepEqual([action, client_id, direction], ['sync', 'laptop', 'to_client'])
acknowledge('ok')
assert.equal((await untilShown(gateway, 'rpc/ended')).outcome, 'succeeded')
console.log('nestjs gateway: shows an acknowledgement that is missing, and then that it came')
process.exit()
