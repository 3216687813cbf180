/** What a browser loads before it shows anything: it is looked at over slow links, from inside a failing network. */
import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { createDashboard } from '../../src/dashboard/index.js'

const MOST_BYTES = 40_000

it('is at most 40 kB, compressed', async () => {
  const dashboard = createDashboard({ api: '/ops/diagnostics' })
  const textOf = async (path: string) => (await dashboard(new Request(`http://localhost/dashboard/${path}`))).text()
  const shell = await textOf('')
  const names = [...shell.matchAll(/dashboard-[0-9a-f]{16}\.(?:js|css)/g)].map(([name]) => name)
  expect(names.length).toBe(2)
  // Each of them is asked for by its name; what names them is some hundred bytes more.
  expect(gzipSync(shell).length).toBeLessThan(600)
  const texts = await Promise.all(names.map(textOf))
  const sizes = texts.map((text) => gzipSync(text, { level: 9 }).length)
  expect(sizes.reduce((sum, size) => sum + size)).toBeLessThanOrEqual(MOST_BYTES)
})
