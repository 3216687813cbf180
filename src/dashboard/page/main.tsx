/** Begins the page. */
import { render } from 'preact'
import { startPolling } from './answers.js'
import { App, startOver } from './app.js'
import { takeKey } from './key.js'
import { applyTheme } from './preferences.js'

applyTheme()
takeKey()
startPolling()
// Handles a link with a key while the page is already open, before the address is read.
addEventListener('hashchange', () => {
  if (takeKey()) startOver()
})
render(<App />, document.body.lastElementChild as Element)
