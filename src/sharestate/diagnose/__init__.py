"""
Diagnoses of share groups: what is wrong, what shows it, and what to do, by rules that are data.

They are made of histories, or of the state topic alone; two histories can be compared.
"""
