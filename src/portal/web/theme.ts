/** The color scheme: that of the system, light, or dark. style/base.css has the rule for each, on which every color depends. */
import { preference } from "./preference.ts"

const theme = preference("custody.theme", ["system", "light", "dark"])
export const useTheme = theme.use

const apply = () => {
  document.documentElement.dataset["theme"] = theme.current()
}
theme.subscribe(apply)
apply()
