/** The live demo as `npm run demo:build` makes it: static files, and no server behind them. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { startNodeServer } from '../../src/adapters/node.js'
import { inChromium } from './chromium.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const TYPES: Record<string, string> = {
  html: 'text/html',
  js: 'text/javascript',
  css: 'text/css',
  json: 'application/json',
}

inChromium('the live demo', (open) => {
  it('shows the recording of a stopped client, its instants and its gap, from static files below any path', async () => {
    const out = mkdtempSync(join(tmpdir(), 'relayscope-demo-'))
    onTestFinished(() => rmSync(out, { recursive: true }))
    execFileSync(process.execPath, ['tools/demo.mjs', '--out', out], { cwd: ROOT, stdio: 'ignore' })
    const asked: string[] = []
    const server = await startNodeServer(
      (request) => {
        const name = new URL(request.url).pathname.replace(/^\/pages\/demo\//, '') || 'index.html'
        asked.push(name)
        if (!/^[\w.-]+$/.test(name)) return new Response(null, { status: 404 })
        return new Response(readFileSync(join(out, name)), {
          headers: { 'content-type': TYPES[name.split('.').at(-1) ?? ''] ?? '' },
        })
      },
      { port: 0, closeTimeoutMs: 1 },
    )
    onTestFinished(async () => void (await server.close()))
    const page = await open(`${server.url}/pages/demo/#/connections`)
    await page.getByText('Incident, not live.').waitFor()
    await page.locator('main').getByText('heartbeat lost').first().waitFor()
    expect(await page.locator('.timeline rect').count()).toBeGreaterThan(0)
    const slider = page.getByRole('slider', { name: 'Instant of the recording' })
    await slider.fill((await slider.getAttribute('min')) as string)
    await expect.poll(() => page.locator('main').getByText('heartbeat lost').count()).toBe(0)
    await page.locator('main').getByText('console-1').first().waitFor()
    expect(
      asked.filter(
        (name) => !/^(?:index\.html|demo\.js|recording\.json|dashboard-\w+\.(?:js|css)|favicon.*)$/.test(name),
      ),
    ).toEqual([])
  })
})
