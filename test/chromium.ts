/** The Chromium that tests drive. */
import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'

/** Debian's own. The one without a window takes half of the other's CPU, and shows a page as that does. */
const HEADLESS = '/usr/bin/chromium-headless-shell'

export const CHROMIUM = process.env.CHROMIUM ?? (existsSync(HEADLESS) ? HEADLESS : '/usr/bin/chromium')

/** On CI a test that cannot run fails. */
export const isChromiumMissing = !existsSync(CHROMIUM) && !process.env.CI

// A test machine has neither a sandbox for root nor a network beyond loopback.
const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking']

export const launchChromium = (...flags: string[]): Promise<Browser> =>
  chromium.launch({ executablePath: CHROMIUM, args: [...FLAGS, ...flags] })
