/** What the dashboard shows of an incident: that nothing is live, what is missing, and the instants of a recording. */
import { expect, it, onTestFinished } from 'vitest'
import { startNodeServer } from '../../src/adapters/node.js'
import { createDashboard } from '../../src/dashboard/index.js'
import { captureIncident } from '../../src/incident/capture.js'
import { createReplay, openRecording, type ReplaySource, snapshotLine } from '../../src/incident/recording.js'
import { connection, NOW } from '../diagnostics/world.js'
import { createOriginal, HEADERS as headers } from '../incident/subject.js'
import { inChromium } from './chromium.js'

/** `relayscope open`, in this process. @returns the address of the page. */
async function serve(source: ReplaySource): Promise<string> {
  const replay = await createReplay(source)
  const dashboard = createDashboard({ api: '' })
  const server = await startNodeServer(
    (request) => (dashboard.owns(new URL(request.url).pathname) ? dashboard : replay)(request),
    { port: 0, closeTimeoutMs: 1 },
  )
  onTestFinished(async () => void (await server.close()))
  return `${server.url}/dashboard/`
}

inChromium('the dashboard of an incident', (open) => {
  it('says above everything that nothing is live, and what is missing', async () => {
    const incident = await captureIncident(createOriginal(), { headers, user: 'alice' })
    const page = await open(await serve({ at: () => incident }))
    const banner = page.getByRole('complementary', { name: 'Incident' })
    await banner.getByText('Incident, not live.').waitFor()
    await banner.getByText('Only user alice.').waitFor()
    await banner.getByText(/things are missing or not whole/).click()
    await banner.getByText('/connections: other users: only the rows of one user were captured').waitFor()
    expect((await page.locator('.top .fresh').innerText()).split('\n')).toEqual(['not live', 'not live'])
    await expect.poll(() => page.title()).toMatch(/^Incident: /)
    const box = await banner.boundingBox()
    expect(box?.y).toBe(0)
    expect(box?.width).toBe(await page.evaluate('document.documentElement.clientWidth'))
    // Ages are by the clock of the incident, however long ago that was.
    await page.goto(`${page.url().split('#')[0]}#/connections/conn-1`)
    const age = page.locator('main .age').first()
    await expect.poll(async () => (await age.innerText()).trim()).toMatch(/^(?:then|\d+(?:\.\d)? ?s(?: before)?)$/)
  })

  it('shows any instant of a recording, and its gaps as gaps', async () => {
    const incident = await captureIncident(createOriginal(), { headers })
    const at = (seconds: number) => new Date(NOW + 1_000 * seconds).toISOString()
    const moved = { ...incident, clocks: { node: null, observer: { from: at(300), to: at(300) } } }
    const change = { kind: 'rows', at: at(60), route: '/connections', remove: [], order: null, cut: false }
    const upsert = [connection({ connection_id: 'later', client_id: 'later' })]
    const lines = [snapshotLine(incident, false), JSON.stringify({ ...change, upsert })]
    const recording = openRecording([
      { name: 'a', read: () => lines.map((line) => `${line}\n`).join('') },
      { name: 'b', read: () => `${snapshotLine(moved, false)}\n` },
    ])
    const page = await open(`${await serve(recording)}#/connections`)
    const slider = page.getByRole('slider', { name: 'Instant of the recording' })
    await page.locator('main').getByText('conn-1').first().waitFor()
    expect(await page.getByText('later').count()).toBe(0)
    await page.locator('.timeline rect').first().waitFor({ state: 'attached' })
    await slider.fill(String(NOW + 122_000))
    await page.locator('main').getByText('later').first().waitFor()
    await page.getByText(/^Nothing was recorded from .*: this is the state before\.$/).waitFor()
    await slider.fill(String(NOW))
    await expect.poll(() => page.locator('main').getByText('later').count()).toBe(0)
  })
})
