/** Mounts the routes of docs/frameworks.md in Elysia and in h3, the server of Nitro and Nuxt, and asks them over HTTP. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'

const KEY = 'the-key-of-the-frameworks'
process.env.SERVICE_ADMIN_KEY = KEY

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
process.exit()
