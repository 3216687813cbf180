/** What a browser loads before it shows anything: it is looked at over slow links, from inside a failing network. */
import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { createDashboard } from '../../src/dashboard/index.js'

/** By what a browser accepts: brotli over HTTPS, gzip over HTTP. */
const MOST_BYTES = { br: 40_000, gzip: 44_000 }

it.each(
  Object.entries(MOST_BYTES),
)('sends at most 40 kB under brotli and 44 kB under gzip: %s', async (encoding, most) => {
  const dashboard = createDashboard({ api: '/ops/diagnostics' })
  const requested = (path: string) =>
    dashboard(new Request(`http://localhost/dashboard/${path}`, { headers: { 'accept-encoding': encoding } }))
  const shell = await (await requested('')).text()
  const names = [...shell.matchAll(/dashboard-[0-9a-f]{16}\.(?:js|css)/g)].map(([name]) => name)
  expect(names.length).toBe(2)
  // Each of them is asked for by its name; what names them is some hundred bytes more.
  expect(gzipSync(shell).length).toBeLessThan(600)
  const sizes = await Promise.all(
    names.map(async (name) => {
      const response = await requested(name)
      expect(response.headers.get('content-encoding')).toBe(encoding)
      return (await response.arrayBuffer()).byteLength
    }),
  )
  expect(sizes.reduce((sum, size) => sum + size)).toBeLessThanOrEqual(most)
})
