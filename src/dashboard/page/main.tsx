/** Begins the page. */
import { render } from 'preact'
import { atInAddress, followLink } from './address.js'
import { resetAuth, showInstant, startPolling } from './answers.js'
import { App } from './app.js'
import { takeKey } from './key.js'
import { applyTheme } from './preferences.js'

applyTheme()
takeKey()
showInstant(atInAddress())
startPolling()
// Handles a link with a key while the page is already open, before the address is read.
addEventListener('hashchange', () => {
  if (takeKey()) resetAuth()
})
addEventListener('popstate', () => showInstant(atInAddress()))
addEventListener('click', followLink)
render(<App />, document.body.firstElementChild as Element)
