/** Begins the page. */
import { render } from 'preact'
import { startPolling } from './answers.js'
import { App, startOver } from './app.js'
import { takeKey } from './key.js'
import { applyTheme } from './preferences.js'

applyTheme()
takeKey()
startPolling()
// A link with a key, followed where the page is open already: before anybody looks at the address.
addEventListener('hashchange', () => {
  if (takeKey()) startOver()
})
render(<App />, document.body)
