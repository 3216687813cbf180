/** What a server must answer in which a framework serves the routes of docs/mounting.md below `${base}/ops`. */
import assert from 'node:assert/strict'

/** Calls `connections` once a second, so that a watcher sees a change. Appended to `relay.mjs`. */
export const FEED = `
let run = 0
const connect = () =>
  connections.connect({ user_id: 'ada', client_id: 'laptop', instance_id: \`run-\${run++}\`, client_type: 'web' })
setInterval(connect, 1_000).unref()
void connect()
`

/** Checks the server at `origin`: the host's page, the answers of the router, the dashboard and its links. */
export async function checkServer(origin, base, key) {
  const signal = AbortSignal.timeout(60_000)
  const ask = (path, headers = {}) => fetch(`${origin}${base}${path}`, { headers, signal })
  const withKey = { 'x-admin-key': key }

  assert.match(await (await ask('/')).text(), /host page/)
  assert.equal((await ask('/ops/diagnostics/capabilities')).status, 403)
  const capabilities = await ask('/ops/diagnostics/capabilities', withKey)
  assert.deepEqual([capabilities.status, (await capabilities.json()).registry], [200, true])
  const { items } = await (await ask('/ops/diagnostics/connections?user_id=ada&limit=1', withKey)).json()
  assert.equal(items.length, 1)
  assert.equal((await ask(`/ops/diagnostics/connections/${items[0].connection_id}`, withKey)).status, 200)
  const head = await fetch(`${origin}${base}/ops/diagnostics/connections`, { method: 'HEAD', headers: withKey, signal })
  assert.equal(head.status, 200)
  assert.equal((await ask('/ops/none', withKey)).status, 404)

  for (const path of ['/ops/dashboard', '/ops/dashboard/']) {
    const page = await ask(path)
    const html = await page.text()
    assert.deepEqual([page.status, page.headers.get('content-type')?.split(';')[0]], [200, 'text/html'], path)
    const [, api] = /data-api="([^"]+)"/.exec(html) ?? []
    const links = [...html.matchAll(/(?:href|src)="([^"#][^"]*)"/g)].map(([, link]) => link)
    for (const link of links.filter((one) => !one.startsWith('data:')))
      assert.equal((await fetch(new URL(link, page.url), { signal })).status, 200, `${path}: ${link}`)
    const fromPage = await fetch(new URL(`${api}/capabilities`, page.url), { headers: withKey, signal })
    assert.equal(fromPage.status, 200, `${path}: ${api}`)
  }
}
