"""The search over layouts: which there are, what each needs, how they rank.

`table` is many layouts as columns, `space` lists those that a stack can run, `evaluate` sizes a table with the engine's
own formulas, `minimum` finds the smallest count that fits, `ranking` orders layouts, `choices` picks alternatives.
"""
